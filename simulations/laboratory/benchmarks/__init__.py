"""Benchmarks of single parts, in CPU time."""
