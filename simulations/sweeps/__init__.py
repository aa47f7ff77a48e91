"""Sweeps and experiments: their runs and their tables."""
