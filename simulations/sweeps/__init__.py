"""Sweeps and experiments: which runs they have, and their tables."""
