"""Quality of the synthetic texts, measured on held-out texts or by one noised query.

`small_model.py` trains a classifier on the synthetic texts and measures its accuracy on held-out ones, `of_texts.py`
makes all other groups of figures in `metrics.json` (each with the intervals and reasons of `figures.py`), and
`federated_count.py` asks the parties for the number of their records that a classifier labels correctly.
"""
