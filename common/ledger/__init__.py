"""The ledger: a hash chain of all questions and charges that reveals edits. It is on disk before an answer leaves."""
