"""The synthetic texts that are nearest to the most held-out texts: a first look at how real the texts are.

Held-out texts vote as records do (WASP, section 3.2, with Q = 1), but without noise, because they belong to the
coordinator and not to a party. No held-out text leaves this module: the result contains only the numbers of votes.
"""

from typing import Any

import numpy as np

from server.evaluation.figures import Measured
from server.metrics.fidelity import blocks

NAME = "nearest_texts"
_MOST = 20
"""Number of texts in the result, of which the report shows two."""


def nearest_texts(measured: Measured) -> dict[str, Any]:
    """Return the texts with the most votes for `metrics.json`.

    Args:
        measured: The synthetic texts and the test texts, with their vectors.

    Returns:
        A list of at most `_MOST` pairs, the most votes first. A pair consists of the line (from 0) of a text in
        `synthetic.jsonl` and the number of held-out texts to which this synthetic text is nearest, by cosine
        similarity. The result is empty without held-out or synthetic texts, and for texts in sections, which are
        embedded section by section.
    """
    if not measured.test or not measured.candidates or measured.in_sections:
        return {}
    # A zero vector, of an empty text, has similarity 0 to all others.
    norms = np.linalg.norm(measured.vectors, axis=1, keepdims=True)
    unit = measured.vectors / np.maximum(norms, np.finfo(np.float32).tiny)
    nearest = np.concatenate([(rows @ unit.T).argmax(axis=1) for rows in blocks(measured.test_vectors)])
    votes = np.bincount(nearest, minlength=len(unit))
    order = np.argsort(-votes, kind="stable")[:_MOST]
    return {NAME: [[int(line), int(votes[line])] for line in order if votes[line]]}
