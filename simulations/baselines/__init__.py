"""Baselines that use the private records without any protection, for comparison with the methods."""
