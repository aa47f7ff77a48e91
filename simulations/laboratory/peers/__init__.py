"""Comparisons with programs of other projects, which get the input or the texts of our runs; their code is not here."""
