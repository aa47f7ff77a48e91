"""OnlyPrivate: the small model trained on all private records together, at ε = ∞ (WASP, section 5.1, baselines).

Its accuracy is an upper bound for synthetic texts. This baseline needs all records in one place, so it exists only in a
simulation (`simulations/baselines/unprotected.py`).
"""

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common.domain import Record
from server.domain import Task
from server.evaluation.small_model import Evaluation, by_encoder, majority_class
from server.method import NoMemory, State
from server.settings.build import build
from server.settings.schema import SimulationSettings
from simulations.baselines import unprotected
from simulations.private_evaluation.compare import real_private

log = logging.getLogger("caucus.simulation")

NAME = "only_private"

STATEMENT = (
    "OnlyPrivate: no privacy (ε is infinite) and no synthetic texts. A small model was trained on the private records "
    "themselves, all in one place. Neither it nor its figures may leave; it is a baseline for experiments."
)
NOT_COVERED = "The private records: nothing about them is protected."


def only_private(settings: SimulationSettings, folder: Path) -> None:
    """Write the run folder of a run that trains on the records themselves, without queries or releases.

    Raises:
        ConfigError: There are no held-out texts for the evaluation.
    """
    started = time.monotonic()
    source, private, held_out = unprotected.records_of(settings)
    task = source.task()
    check_labels(task)
    unprotected.write(
        settings,
        folder,
        task,
        state=State(memory=NoMemory()),
        metrics=measured(settings, task.classifier_inputs(private), task.classifier_inputs(held_out)),
        statement=STATEMENT,
        not_covered=NOT_COVERED,
        started=started,
    )


def check_labels(task: Task) -> None:
    """Raise a ConfigError if a task has no labels, since only a classifier of the records is measured.

    Raises:
        ConfigError: The task has no labels.
    """
    task.check_labelled("method", "which a classifier learns from the records", "Choose method=private_exemplars")


def measured(settings: SimulationSettings, private: Sequence[Record], held_out: Sequence[Record]) -> dict[str, Any]:
    """Train the small model on private records; return the content of `metrics.json`, with accuracy and time.

    Raises:
        ConfigError: The model would send the records to an endpoint.
    """
    evaluation: Evaluation = build(settings.evaluation)
    metrics = {
        "definition": evaluation.definition,
        "test_records": len(held_out),
        "synthetic": None,
        "majority_class": majority_class(held_out),
        "real_private": _score(settings, evaluation, private, held_out),
    }
    if "utility_encoder" in evaluation.metrics:
        other = by_encoder(evaluation)
        metrics["utility_encoder"] = {"definition": other.definition} | _score(settings, other, private, held_out)
    return metrics


def _score(
    settings: SimulationSettings, evaluation: Evaluation, private: Sequence[Record], held_out: Sequence[Record]
) -> dict[str, Any]:
    encoder = build(settings.embedding) if evaluation.on_vectors else None
    started = time.monotonic()
    scores = real_private(private, held_out, evaluation, encoder)
    seconds = round(time.monotonic() - started, 3)
    log.info("%s: %d private records, %d held-out texts, %.1f s", NAME, len(private), len(held_out), seconds)
    return scores | {"seconds": seconds}
