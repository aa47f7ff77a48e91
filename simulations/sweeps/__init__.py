"""Sweeps and experiments: how their runs are made, and the tables of their results."""
