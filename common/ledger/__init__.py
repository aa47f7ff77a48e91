"""The ledger: a hash chain of all questions and charges, on disk before any answer leaves, which reveals edits."""
