"""Code that both the coordinator and the hospitals use: plan, queries, messages, noise, masks and ledger."""
