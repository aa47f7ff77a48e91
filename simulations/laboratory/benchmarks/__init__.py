"""Benchmarks of the project's parts, one module for each; most of them measure CPU time."""
