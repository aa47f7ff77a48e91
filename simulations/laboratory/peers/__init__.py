"""Comparison with other projects' programs, which get the input or the texts of our runs; their code is not here."""
