"""The ledger: what was asked and charged, on disk before any answer leaves, chained against edits."""
