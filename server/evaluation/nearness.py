"""Nearness of the synthetic texts to the held-out ones.

With labels, a run is judged by what a classifier learns from its texts (`zero_shot.py`). Without labels, it is judged
by the distance (FID) of its texts from held-out texts, which shows whether the hospitals' answers bring the texts
nearer to real ones. For comparison, the same distance is measured for texts that the same models wrote before any
answer, and for real texts. FID depends on the number of texts, so all three sets have the same size, and each is
compared with the second half of the held-out texts. The set of real texts is drawn from the first half.

A first look at any run is the texts that are nearest to the most held-out texts. Held-out texts vote as records do
(WASP, section 3.2, with Q = 1), but without noise, because they belong to the coordinator and not to a party. No
held-out text leaves this module: the result contains only the numbers of votes.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import CaucusError
from server.documents.metrics import Figure, Group
from server.domain import Candidate
from server.evaluation.figures import Measured, missing
from server.metrics import intervals
from server.metrics.fidelity import FREEDOM, fid, fid_error

NAME, NEAREST = "nearness", "nearest_texts"
_MOST = 20
"""Number of texts in the result, of which the report shows two."""
_ROWS = 512
"""Number of held-out texts compared at once: 20,000 texts then take 40 MB."""

_DEFINITION = (
    "FID of {texts} synthetic texts drawn at random from {real} held-out ones; zero_shot: of as many texts that the "
    "same models wrote before any answer; real: of as many other held-out texts. difference: zero_shot minus the "
    "first. Intervals of 95% by a jackknife over the texts in five groups (Student's t), the {real} held-out ones "
    "fixed; another run of the language models may differ by more."
)


def nearness(measured: Measured, zero_shot: Sequence[Candidate]) -> dict[str, Group]:
    """Return the comparison for `metrics.json`; empty with labels, or without held-out or synthetic texts."""
    if measured.labelled or not measured.test or not measured.candidates:
        return {}
    held_out = measured.drawn([record.text for record in measured.test], "nearness", len(measured.test))
    half, before = len(held_out) // 2, [text.text for text in zero_shot]
    count = min(len(texts) for texts in (measured.texts, before, held_out[:half]) if texts)
    about = {"definition": _DEFINITION.format(texts=count, real=len(held_out) - half), "texts": count}
    real = measured.embedded(held_out[half:])

    def distance(texts: Sequence[str]) -> tuple[float, float]:
        """Return the FID of as many random texts, and its standard error, which is NaN for too few texts.

        Raises:
            DataError: There are fewer than two texts.
        """
        drawn = measured.embedded(measured.drawn(texts, "near texts", count))
        value, error = fid(drawn, real), fid_error(drawn, real)
        return value, math.nan if error is None else error

    try:
        ours, theirs = distance(measured.texts), distance(held_out[:half])
        without = distance(before) if before else None
    except CaucusError as error:
        return {NAME: about | missing(("fid",), error, rows=count)}
    figures = {"fid": _figure(*ours, rows=count), "real": _figure(*theirs, rows=count)}
    if without:
        change = _figure(without[0] - ours[0], without[1], ours[1], rows=count)
        figures |= {"zero_shot": _figure(*without, rows=count), "difference": change}
    return {NAME: about | figures}


def _figure(value: float, *errors: float, rows: int) -> Figure:
    """Return a figure with its interval from the standard errors of its parts; without one if an error is NaN."""
    half = intervals.half_width([(error**2, FREEDOM) for error in errors])
    return Figure(value=value, interval=None if math.isnan(half) else (value - half, value + half), rows=rows)


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
    return {NEAREST: [[int(lines[at]), int(votes[at])] for at in order if votes[at]]}


def _directions(vectors: NDArray[np.float32]) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Return the indices of the vectors that have a direction, and these directions, (directions, dim), unit norm.

    The zero vector, of a text without words, has none, and neither has a vector that is not finite.
    """
    norms = np.linalg.norm(vectors, axis=1)
    (lines,) = np.nonzero((norms > 0) & np.isfinite(norms))
    return lines, vectors[lines] / norms[lines, None]
