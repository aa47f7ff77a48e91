"""Baselines for comparison with the methods, which use the private records without any protection."""
