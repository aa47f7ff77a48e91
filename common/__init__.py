"""Common ground of coordinator and hospitals, and nothing else: plan, queries, messages, noise, masks, ledger."""
