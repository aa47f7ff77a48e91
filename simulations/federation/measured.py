"""The input for a simulation's figures: the released texts, and all records as its settings deal them out."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from common.models.encoder import Encoder
from server.documents.privacy import Privacy
from server.domain import Candidate
from server.prepare.build import build
from server.settings.schema import SimulationSettings
from server.tasks.sources import Source
from server.vector_cache import RememberingEncoder
from simulations.federation import parties
from simulations.private_evaluation.of_records import MeasuredWithRecords


def with_records(settings: SimulationSettings, candidates: Sequence[Candidate]) -> MeasuredWithRecords:
    """Return the input for a simulated run's figures: these texts, and the records as the settings deal them out.

    The settings do not contain the run's guarantee; `with_promise` adds it.
    """
    source: Source = build(settings.task)
    encoder: Encoder = build(settings.embedding)
    task, dealt = source.task(), parties.deal(settings)
    return MeasuredWithRecords(
        candidates=task.classifier_inputs(candidates),
        released=[candidate.text for candidate in candidates],
        test=task.classifier_inputs(source.held_out()),
        evaluation=build(settings.evaluation),
        encoder=encoder,
        embed=RememberingEncoder(encoder).encode,
        experiment_seed=settings.experiment_seed,
        public=lambda: [example.text for example in source.public_examples()],
        language=task.language,
        private=task.classifier_inputs(record for records in dealt for record in records),
        sites=[party for party, records in enumerate(dealt) for _ in task.classifier_inputs(records)],
        canaries=parties.planted_canaries(settings, source),
        canary_times=settings.federation.canary_times,
        style_site=settings.federation.style_site,
    )


def with_promise(measured: MeasuredWithRecords, folder: Path) -> MeasuredWithRecords:
    """Return the input with the ε and δ of a run folder; ε is 0 without queries, infinite without a privacy proof."""
    privacy = Privacy.load(folder)
    return replace(measured, epsilon=privacy.planned_epsilon, delta=privacy.delta)
