"""Pure functions from texts, vectors or predictions to figures; `accuracy.py` trains and scores a classifier."""
