"""Baselines that use the private records without any protection: their run folder, and OnlyPrivate.

OnlyPrivate trains the small model on all private records together (WASP, section 5.1, baselines). Its accuracy is an
upper bound for synthetic texts. A baseline needs all records in one place, so it exists only in a simulation.

The configuration of such a method names no class (`_target_`) that a coordinator could instantiate, and `server/app.py`
rejects it. The first sentence in its `privacy.json` states that epsilon is infinite, and why.
"""

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from common.domain import Record
from common.errors import ConfigError
from common.plan.plan import Plan
from server.documents.metrics import Metrics
from server.documents.run import COMPLETE, RunSummary, versions
from server.domain import Task
from server.evaluation.small_model import Evaluation, majority_class, with_encoder_model
from server.method import NoMemory, State
from server.planning.guarantee_facts import describe
from server.prepare.build import build
from server.report.write import write_report
from server.run_folder import write_run
from server.settings.schema import SimulationSettings
from server.tasks.sources import Source
from simulations.federation import parties
from simulations.private_evaluation.compare import real_private

log = logging.getLogger("caucus.simulation")

ONLY_PRIVATE = "only_private"
_STATEMENT = (
    "OnlyPrivate: no privacy (ε is infinite) and no synthetic texts. A small model was trained on the private records "
    "themselves, all in one place. Neither it nor its figures may leave; it is a baseline for experiments."
)


def only_private(settings: SimulationSettings, folder: Path) -> None:
    """Write the run folder of a run that trains on the records themselves, without queries or releases.

    Raises:
        ConfigError: There are no held-out texts for the evaluation.
    """
    started = time.monotonic()
    source, private, held_out = records_of(settings)
    task = source.task()
    check_labels(task)
    write_baseline(
        settings,
        folder,
        task,
        state=State(memory=NoMemory()),
        metrics=train_on_records(settings, task.classifier_inputs(private), task.classifier_inputs(held_out)),
        statement=_STATEMENT,
        not_covered="The private records: nothing about them is protected.",
        started=started,
    )


def records_of(settings: SimulationSettings) -> tuple[Source, list[Record], list[Record]]:
    """Return the task, the private records of all parties together, and the held-out records.

    Raises:
        ConfigError: There are no held-out texts for the evaluation, or the task allows several labels per text, or has
            sections or types of spans.
    """
    source: Source = build(settings.task)
    name, task = f"method {settings.method.name}", source.task()
    task.check_single(name, "for a baseline's prompts and figures", "Choose method=class_sums or method=wasp")
    task.check_unmarked(name, "as records have no marks to show or learn", "Choose method=class_sums")
    held_out = source.held_out()
    if not held_out:
        raise ConfigError("task.test", expected="held-out records to measure on", got="none")
    return source, [record for records in parties.deal(settings) for record in records], held_out


def write_baseline(
    settings: SimulationSettings,
    folder: Path,
    task: Task,
    *,
    state: State[NoMemory],
    metrics: dict[str, Any],
    statement: str,
    not_covered: str,
    started: float,
) -> None:
    """Write the run folder and its report.

    Args:
        settings: Settings of the run; the name of the method is the baseline's name.
        folder: The run folder.
        task: Description of the texts.
        state: The run's texts and rounds, if any.
        metrics: Content of `metrics.json`.
        statement: Sentence about the lack of protection, the first sentence in `privacy.json`.
        not_covered: The first item of `not_covered` in `privacy.json`, which lists what the guarantee leaves open.
        started: `time.monotonic()` at the start of the run.
    """
    plan = Plan(
        method=settings.method.name,
        labels=tuple(task.labels),
        encoder="none",
        parties=settings.federation.parties,
        max_dropouts=0,
        colluders=0,
        threshold=1,
        secure=False,
        epsilon=math.inf,
        delta=settings.privacy.delta,
        unit=settings.privacy.unit,
        queries=(),
    )
    facts = describe(plan, simulation=True)
    privacy = replace(
        facts,
        statement=statement,
        planned_epsilon=math.inf,
        pure_epsilon=None,
        released_epsilon=math.inf,
        party_epsilon=math.inf,
        against_colluders=(),
        spent=replace(facts.spent, epsilon=math.inf),
        not_covered=(not_covered, *facts.not_covered),
    )
    summary = RunSummary(
        run=settings.run,
        status=COMPLETE,
        method=settings.method.name,
        task=task.name,
        parties=settings.federation.parties,
        seconds=round(time.monotonic() - started, 3),
        versions=versions(),
    )
    Metrics(content=metrics).save(folder)
    write_run(folder, state, privacy=privacy, summary=summary)
    write_report(folder)


def check_labels(task: Task) -> None:
    """Raise a ConfigError if a task has no labels, since only a classifier of the records is measured."""
    task.check_labelled("method", "which a classifier learns from the records", "Choose method=private_exemplars")


def train_on_records(
    settings: SimulationSettings, private: Sequence[Record], held_out: Sequence[Record]
) -> dict[str, Any]:
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
        other = with_encoder_model(evaluation)
        metrics["utility_encoder"] = {"definition": other.definition} | _score(settings, other, private, held_out)
    return metrics


def _score(
    settings: SimulationSettings, evaluation: Evaluation, private: Sequence[Record], held_out: Sequence[Record]
) -> dict[str, Any]:
    encoder = build(settings.embedding) if evaluation.on_vectors else None
    started = time.monotonic()
    scores = real_private(private, held_out, evaluation, encoder)
    seconds = round(time.monotonic() - started, 3)
    log.info("%s: %d private records, %d held-out texts, %.1f s", ONLY_PRIVATE, len(private), len(held_out), seconds)
    return scores | {"seconds": seconds}
