"""The input of a simulation's figures: the released texts, and all records as its configuration deals them out."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from omegaconf import DictConfig

from server.domain import Candidate
from server.draft import build
from server.tasks.sources import Source
from simulations.federation import parties
from simulations.private_evaluation import canaries
from simulations.private_evaluation.of_records import MeasuredWithRecords


def with_records(config: DictConfig, candidates: Sequence[Candidate]) -> MeasuredWithRecords:
    """Input of the figures of a simulated run: these texts, and the records that its configuration deals out.

    What the run promises is not in its configuration: see `promised`.
    """
    source: Source = build(config.task)
    task, dealt = source.task(), parties.deal(config)
    whole = [record for records in dealt for record in records]
    return MeasuredWithRecords(
        candidates=task.read(candidates),
        released=[candidate.text for candidate in candidates],
        test=task.read(source.held_out()),
        evaluation=build(config.evaluation),
        encoder=build(config.embedding),
        experiment_seed=config.experiment_seed,
        public=lambda: [example.text for example in source.public_examples()],
        private=task.read(whole),
        structure=task.structure,
        whole_records=[record.text for record in whole],
        sites=[party for party, records in enumerate(dealt) for _ in records],
        canaries=canaries.canaries(config.federation.canaries, list(task.labels), config.experiment_seed),
        style_site=config.federation.style_site,
    )


def promised(measured: MeasuredWithRecords, folder: Path) -> MeasuredWithRecords:
    """The same, with the guarantee of a run folder: 0 without private answers, infinite without a proof."""
    privacy = json.loads((folder / "privacy.json").read_text(encoding="utf-8"))
    return replace(measured, epsilon=float(privacy["planned_epsilon"]), delta=float(privacy["delta"]))
