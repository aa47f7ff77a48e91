"""How good the synthetic data is, by texts that are no party's records."""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.domain import Candidate, Record
from common.errors import CaucusError
from common.metrics.fidelity import fid
from common.metrics.utility import DEFINITION, train_and_test

log = logging.getLogger("caucus.evaluate")


def metrics(candidates: Sequence[Candidate], held_out: Sequence[Record]) -> dict[str, Any]:
    """`metrics.json`: a small model trained on the synthetic texts and tested on real ones.

    A simulation adds `real_private`, the same model trained on the private records. Without held-out texts nothing is
    measured and nothing is claimed: it is empty.
    """
    if not held_out:
        return {}
    return {
        "definition": DEFINITION,
        "test_records": len(held_out),
        "synthetic": score(
            [Record(candidate.text, candidate.label) for candidate in candidates],
            held_out,
            weights=[candidate.weight for candidate in candidates],
        ),
        "real_private": None,
    }


def score(train: Sequence[Record], test: Sequence[Record], *, weights: Sequence[float] | None = None) -> dict[str, Any]:
    """Accuracy and macro-F1 on `test` of the small model trained on `train`, by weights where there are any."""
    figures = train_and_test(
        [record.text for record in train],
        [record.label for record in train],
        [record.text for record in test],
        [record.label for record in test],
        train_weights=weights,
    )
    return {"records": len(train), "accuracy": figures.accuracy, "macro_f1": figures.macro_f1}


def fid_or_none(synthetic: NDArray[np.float32], real: NDArray[np.float32]) -> float | None:
    """FID of two sets of vectors; None where it cannot be had, with the reason in the log."""
    try:
        return fid(synthetic, real)
    except CaucusError as error:
        log.info("no FID: %s", error)
        return None
