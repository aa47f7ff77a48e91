"""Sweeps and experiments, which are several runs with different settings: their runs and their tables."""
