"""Whether spans fit a text."""

from server.spans import misfit


def fit(text, spans):
    """Return whether spans are in order, do not overlap and are not blank, and the text contains no tag."""
    return misfit(text, enumerate(spans, start=1)) is None
