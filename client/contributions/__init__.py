"""What a hospital's records contribute to the answer of each query, before noise is added."""
