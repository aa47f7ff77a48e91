"""What the project measures itself with: benchmarks, results, audit, nodes. No part of what is installed."""
