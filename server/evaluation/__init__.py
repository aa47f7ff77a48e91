"""Quality of the synthetic texts, measured on held-out texts or by one noised query.

`small_model.py` trains a classifier on the synthetic texts and measures its accuracy on held-out texts, `of_texts.py`
computes all other groups of figures in `metrics.json` (`figures.py` provides their intervals, and the reasons why
figures are missing), and `federated_count.py` asks the parties how many of their records a classifier labels correctly.
"""
