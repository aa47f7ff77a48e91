"""The ledger: all questions and charges, on disk before any answer leaves, in a hash chain that reveals edits."""
