"""The project's own measurements: benchmarks, results, audit, nodes. They are not part of the installed package."""
