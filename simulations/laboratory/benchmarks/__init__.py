"""Benchmarks of the project's components, one module for each; most of them measure CPU time."""
