"""What coordinator and hospitals must agree on, and nothing else: plan, queries, messages, noise, masks, ledger."""
