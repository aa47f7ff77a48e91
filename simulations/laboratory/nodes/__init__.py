"""Many hospitals' real nodes on one machine: their cost, and the failures that they survive or not."""
