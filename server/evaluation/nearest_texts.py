"""The synthetic texts that are nearest to the most held-out texts: a first look at how real the texts are.

Held-out texts vote as records do (WASP, section 3.2, with Q = 1), but without noise, because they belong to the
coordinator and not to a party. No held-out text leaves this module: the result contains only the numbers of votes.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from server.evaluation.figures import Measured

NAME = "nearest_texts"
_MOST = 20
"""Number of texts in the result, of which the report shows two."""
_ROWS = 512
"""Number of held-out texts compared at once: 20,000 texts then take 40 MB."""


def nearest_texts(measured: Measured) -> dict[str, Any]:
    """Return the texts with the most votes for `metrics.json`.

    Returns:
        A list of at most `_MOST` pairs, the most votes first. A pair consists of the line (from 0) of a text in
        `synthetic.jsonl` and the number of held-out texts to which this synthetic text is nearest, by cosine
        similarity. The result is empty for texts in sections, which are embedded section by section, and if no
        held-out or no synthetic text has a direction.
    """
    if not measured.test or not measured.candidates or measured.in_sections:
        return {}
    lines, unit = _directions(measured.vectors)
    _, asked = _directions(measured.test_vectors)
    if not len(lines) or not len(asked):
        return {}
    parts = np.array_split(asked, math.ceil(len(asked) / _ROWS))
    votes = np.bincount(np.concatenate([(part @ unit.T).argmax(axis=1) for part in parts]), minlength=len(lines))
    order = np.argsort(-votes, kind="stable")[:_MOST]
    return {NAME: [[int(lines[at]), int(votes[at])] for at in order if votes[at]]}


def _directions(vectors: NDArray[np.float32]) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Return the indices of the vectors that have a direction, and these directions, (directions, dim), unit norm.

    The zero vector, of a text without words, has none, and neither has a vector that is not finite.
    """
    norms = np.linalg.norm(vectors, axis=1)
    (lines,) = np.nonzero((norms > 0) & np.isfinite(norms))
    return lines, vectors[lines] / norms[lines, None]
