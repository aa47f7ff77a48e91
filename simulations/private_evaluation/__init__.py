"""Comparison of the synthetic texts with the private records, without noise: in simulations only."""
