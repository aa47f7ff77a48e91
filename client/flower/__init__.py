"""Flower inside: all that a hospital uses of Flower without Flower having made it public; README.md lists the names."""
