"""Comparison of the synthetic texts with the private records, without noise, which is only possible in simulations."""
