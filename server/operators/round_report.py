"""The method's part of a round's report: the requests to the models, and the texts that they wrote."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from server.documents.rounds import RoundReport, Tokens
from server.domain import Candidate
from server.llm.generate import Generated, Written


def make_report(
    number: int,
    models: Sequence[str],
    *,
    requested: Mapping[str, int],
    generated: Iterable[Candidate],
    candidates: int,
    work: Iterable[Generated | Written],
    notes: Iterable[str] = (),
    figures: Mapping[str, Any] | None = None,
) -> RoundReport:
    """Make the method's part of a round's report.

    Args:
        number: Round number.
        models: Names of the language models.
        requested: Number of candidates requested from each model.
        generated: New candidates.
        candidates: Number of candidates after the round.
        work: All output of the models, including texts that do not become candidates.
        notes: Remarks for readers of the report.
        figures: Figures that only this method reports.
    """
    written = Counter(candidate.model for candidate in generated)
    uses = [output.use for output in work]
    return RoundReport(
        round=number,
        requested={model: requested.get(model, 0) for model in models},
        generated={model: written[model] for model in models},
        lost={model: requested.get(model, 0) - written[model] for model in models},
        candidates=candidates,
        tokens=Tokens(
            input=sum(use.input_tokens for use in uses),
            cached=sum(use.cached_tokens for use in uses),
            output=sum(use.output_tokens for use in uses),
        ),
        calls=sum(use.calls for use in uses),
        losses=_merged(use.losses for use in uses),
        cleaned=_merged(use.cleaned for use in uses),
        notes=tuple(notes),
        figures=figures or {},
    )


def _merged(counts: Iterable[Mapping[str, Counter[str]]]) -> dict[str, dict[str, int]]:
    """Return the sums of counts by model and kind, omitting kinds that did not occur."""
    merged: dict[str, Counter[str]] = {}
    for by_model in counts:
        for model, kinds in by_model.items():
            merged.setdefault(model, Counter()).update(kinds)
    return {model: dict(sorted(kinds.items())) for model, kinds in sorted(merged.items())}
