"""Contributions of a hospital's records to the answer of each query, before noise."""
