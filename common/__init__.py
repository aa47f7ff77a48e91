"""Code that coordinator and hospitals share, and nothing else: plan, queries, messages, noise, masks, ledger."""
