"""OnlyPrivate: the small model trained on all private records together, at ε = ∞ (WASP, section 5.1, baselines).

It is an upper bound for synthetic texts. It needs all records in one place, so it exists only in a simulation:
its configuration names no class (`_target_`) that a coordinator could build, and `server/app.py` refuses it.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.utils import instantiate
from omegaconf import DictConfig

from common.domain import Record
from common.errors import ConfigError
from common.plan.plan import Plan
from server.metrics.accuracy import DEFINITION
from server.planning.guarantee_facts import describe
from server.report import write_report
from server.run_folder import write_json
from server.tasks.sources import Source
from simulations import parties
from simulations.private_evaluation.compare import real_private

NAME = "only_private"

STATEMENT = (
    "OnlyPrivate: no privacy (ε is infinite) and no synthetic texts. A small model was trained on the private records "
    "themselves, all in one place. Neither it nor its figures may leave; it is a baseline for experiments."
)
NOT_COVERED = "The private records: nothing about them is protected."


def only_private(config: DictConfig, folder: Path) -> None:
    """Write the run folder of a run that trains on the records, without queries or releases.

    Raises:
        ConfigError: There are no held-out texts to measure on.
    """
    source: Source = instantiate(config.task, _convert_="all")
    task, held_out = source.task(), source.held_out()
    private = [record for records in parties.deal(config) for record in records]
    if not held_out:
        raise ConfigError("task.test", expected="held-out records to measure on", got="none")
    plan = Plan(
        method=NAME,
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
    facts |= {"statement": STATEMENT, "not_covered": [NOT_COVERED, *facts["not_covered"]]}
    write_json(folder / "privacy.json", {"statement": STATEMENT, **facts})
    write_json(
        folder / "metrics.json",
        {
            "definition": DEFINITION,
            "test_records": len(held_out),
            "synthetic": None,
            "real_private": score(config, private, held_out),
        },
    )
    for name in ("synthetic.jsonl", "rounds.jsonl"):
        (folder / name).write_text("", encoding="utf-8")
    summary = {"run": config.run, "status": "complete", "method": NAME, "task": task.name}
    write_json(folder / "run.json", summary | {"parties": config.federation.parties, "seconds": 0.0, "versions": {}})
    write_report(folder)


def score(config: DictConfig, private: Sequence[Record], held_out: Sequence[Record]) -> dict[str, Any]:
    """Accuracy and macro-F1 of the configured small model trained on the private records.

    Raises:
        ConfigError: The model would send the records to an endpoint.
    """
    evaluation = instantiate(config.evaluation, _convert_="all")
    encoder = instantiate(config.embedding, _convert_="all") if evaluation.model in {"encoder", "network"} else None
    return real_private(private, held_out, evaluation, encoder)
