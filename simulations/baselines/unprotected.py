"""The run folder of a baseline that uses private records without any protection; it exists only in a simulation.

The configuration of such a method names no class (`_target_`) that a coordinator could build, and `server/app.py`
refuses it. Its folder says first that epsilon is infinite, and why.
"""

import math
import time
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from common.domain import Record
from common.errors import ConfigError
from common.plan.plan import Plan
from server.domain import Task
from server.draft import build
from server.method import NoMemory, State
from server.planning.guarantee_facts import describe
from server.report import write_report
from server.run_folder import write_json, write_run
from server.tasks.sources import Source
from simulations.federation import parties


def records_of(config: DictConfig) -> tuple[Source, list[Record], list[Record]]:
    """The task, the private records of all parties together, and the held-out ones.

    Raises:
        ConfigError: There are no held-out texts to measure on.
    """
    source: Source = build(config.task)
    held_out = source.held_out()
    if not held_out:
        raise ConfigError("task.test", expected="held-out records to measure on", got="none")
    return source, [record for records in parties.deal(config) for record in records], held_out


def write(
    config: DictConfig,
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
        config: Of the run; its method gives the name.
        folder: The run folder.
        task: What the texts are.
        state: Its texts and rounds, if any.
        metrics: Content of `metrics.json`.
        statement: What is not protected, in the first place of `privacy.json`.
        not_covered: The same, first in the list of what the guarantee does not cover.
        started: `time.monotonic()` at the start of the run.
    """
    plan = Plan(
        method=config.method.name,
        labels=tuple(task.labels),
        encoder="none",
        parties=config.federation.parties,
        max_dropouts=0,
        colluders=0,
        threshold=1,
        secure=False,
        epsilon=math.inf,
        delta=float(config.privacy.delta),
        unit=config.privacy.unit,
        queries=(),
    )
    facts = describe(plan, simulation=True)
    facts |= dict.fromkeys(("planned_epsilon", "released_epsilon", "party_epsilon"), math.inf) | {"pure_epsilon": None}
    facts |= {"against_colluders": [], "spent": facts["spent"] | {"epsilon": math.inf}}
    facts |= {"statement": statement, "not_covered": [not_covered, *facts["not_covered"]]}
    summary = {
        "run": config.run,
        "status": "complete",
        "method": config.method.name,
        "task": task.name,
        "parties": config.federation.parties,
        "seconds": round(time.monotonic() - started, 3),
    }
    write_json(folder / "metrics.json", metrics)
    write_run(folder, state, privacy={"statement": statement, **facts}, summary=summary)
    write_report(folder)
