"""What a hospital's records add to the answer of each query, before noise."""
