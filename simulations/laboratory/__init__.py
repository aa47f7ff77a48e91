"""The project's own measurements: benchmarks, results, audit, nodes, peers. The package is installed without them."""
