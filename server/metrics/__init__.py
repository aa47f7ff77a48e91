"""Pure measures of texts, vectors and predictions: arrays in, numbers out; `accuracy.py` scores a classifier."""
