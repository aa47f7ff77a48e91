"""Comparison with programs of others, which get the input or the texts of our runs; none of their code is here."""
