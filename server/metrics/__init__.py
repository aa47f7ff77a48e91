"""Metrics: pure functions of texts, vectors or predictions; `accuracy.py` trains and scores a classifier."""
