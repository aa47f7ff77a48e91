"""The project's own measurements: benchmarks, results, audit, nodes, peers. It is not part of the installed package."""
