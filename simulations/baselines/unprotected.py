"""The run folder of a baseline that uses private records without any protection; it exists only in a simulation.

The configuration of such a method names no class (`_target_`) that a coordinator could instantiate, and `server/app.py`
rejects it. The first sentence in its `privacy.json` states that epsilon is infinite, and why.
"""

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from common.domain import Record
from common.errors import ConfigError
from common.plan.plan import Plan
from server.documents.metrics import Metrics
from server.documents.run import COMPLETE, RunSummary, versions
from server.domain import Task
from server.method import NoMemory, State
from server.planning.guarantee_facts import describe
from server.report.write import write_report
from server.run_folder import write_run
from server.settings.build import build
from server.settings.schema import SimulationSettings
from server.tasks.sources import Source
from simulations.federation import parties


def records_of(settings: SimulationSettings) -> tuple[Source, list[Record], list[Record]]:
    """Return the task, the private records of all parties together, and the held-out records.

    Raises:
        ConfigError: There are no held-out texts for the evaluation, or the task allows several labels per text, or has
            sections or types of spans.
    """
    source: Source = build(settings.task)
    name, task = f"method {settings.method.name}", source.task()
    task.check_single(name, "for a baseline's prompts and figures", "Choose method=census or method=wasp")
    task.check_unmarked(name, "as records have no marks to show or learn", "Choose method=census")
    held_out = source.held_out()
    if not held_out:
        raise ConfigError("task.test", expected="held-out records to measure on", got="none")
    return source, [record for records in parties.deal(settings) for record in records], held_out


def write(
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
