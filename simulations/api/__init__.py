"""Simulations from Python: the functions, the tables that they take, and the result that they return."""
