"""Many hospitals' real processes on one machine: what a run costs, and what happens when hospitals fail."""
