"""Benchmarks of single parts, most of them in CPU time."""
