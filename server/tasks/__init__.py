"""The public side of a data set: labels, wording, public texts, held-out texts, and the demo notes."""
