"""The project's own measurements: benchmarks, results, audit, nodes, peers. They are not in the installed package."""
