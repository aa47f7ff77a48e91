"""Many hospitals' real nodes on one machine: what they cost, and what breaks them."""
