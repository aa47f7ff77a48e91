"""Nearness to real texts, for tasks without labels: do the hospitals' answers bring the texts nearer to real ones?

With labels a run is judged by what a classifier learns from its texts (`zero_shot.py`). Without, it is judged by the
distance of its texts from held-out ones, FID, next to that of what the same models wrote before any answer, and of real
texts. FID depends on the numbers of texts, so all three are of equally many texts, against the same real ones: the
second half of the held-out texts, whose first half takes the place of synthetic texts.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from common import rng
from common.errors import CaucusError
from server.domain import Candidate
from server.evaluation.figures import Figure, Group, Measured, missing
from server.metrics.fidelity import fid, fid_error

NAME = "nearness"

_NORMAL = 1.96
_DEFINITION = (
    "FID of {texts} synthetic texts drawn at random from {real} held-out ones; zero_shot: of as many texts that the "
    "same models wrote before any answer; real: of as many other held-out texts. difference: zero_shot minus the "
    "first. Intervals of 95 % by a jackknife over the texts, the {real} held-out ones fixed."
)


def nearness(measured: Measured, zero_shot: Sequence[Candidate]) -> dict[str, Group]:
    """Return the comparison for `metrics.json`; empty with labels, or without held-out or synthetic texts.

    Args:
        measured: The synthetic texts, the test texts and the settings.
        zero_shot: Texts that the same models wrote before any answer; may be empty.
    """
    if measured.labelled or not measured.test or not measured.candidates:
        return {}
    held_out = measured.drawn(measured.test, "nearness", len(measured.test))
    half = len(held_out) // 2
    sets = {"fid": measured.candidates, "zero_shot": zero_shot, "real": held_out[:half]}
    count = min(len(members) for members in sets.values() if members or members is not zero_shot)
    about = {"definition": _DEFINITION.format(texts=count, real=len(held_out) - half), "texts": count}
    real = measured.embedded([record.text for record in held_out[half:]])
    figures: dict[str, Figure] = {}
    errors: dict[str, float] = {}
    for name, members in sets.items():
        if not members:
            continue
        order = rng.experiment(measured.experiment_seed, "nearness", name).permutation(len(members))[:count]
        vectors = measured.embedded([members[at].text for at in order])
        try:
            figures[name], errors[name] = _distance(vectors, real)
        except CaucusError as error:
            return {NAME: about | missing(("fid",), error, rows=count)}
    if "zero_shot" in figures:
        value = figures["zero_shot"]["value"] - figures["fid"]["value"]
        figures["difference"] = _figure(value, math.hypot(errors["fid"], errors["zero_shot"]), rows=count)
    return {NAME: about | figures}


def _distance(vectors: NDArray[np.float32], real: NDArray[np.float32]) -> tuple[Figure, float]:
    """Return a FID as a figure, and its standard error; NaN for too few texts."""
    error = fid_error(vectors, real) if len(vectors) > 1 else None
    error = math.nan if error is None else error
    return _figure(fid(vectors, real), error, rows=len(vectors)), error


def _figure(value: float, error: float, *, rows: int) -> Figure:
    reach = _NORMAL * error
    return {"value": value, "interval": None if math.isnan(reach) else (value - reach, value + reach), "rows": rows}
