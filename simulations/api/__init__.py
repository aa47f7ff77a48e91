"""Simulations from Python: the functions, the tables that they accept, and the result that they return."""
