"""Flower inside: all that the coordinator uses of Flower without Flower having made it public; see README.md."""
