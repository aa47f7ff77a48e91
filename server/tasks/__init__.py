"""The public part of a data set: labels, wording, public texts, held-out texts, and the demo notes."""
