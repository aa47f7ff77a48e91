"""The method's part of a round's report: what was asked of the models, and what they wrote."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from server.domain import Candidate
from server.llm.generate import Generated, Written
from server.method import RoundReport


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
    """The method's part of a round's report.

    Args:
        number: The round.
        models: Names of the language models.
        requested: By model, the texts asked for that were to become candidates.
        generated: Those that did.
        candidates: How many there are now.
        work: All that models wrote, also what is no candidate.
        notes: What a reader should know.
        figures: Figures of this method alone.
    """
    written = Counter(candidate.model for candidate in generated)
    uses = [each.use for each in work]
    return RoundReport(
        round=number,
        requested={model: requested.get(model, 0) for model in models},
        generated={model: written[model] for model in models},
        lost={model: requested.get(model, 0) - written[model] for model in models},
        candidates=candidates,
        tokens={
            "input": sum(use.input_tokens for use in uses),
            "cached": sum(use.cached_tokens for use in uses),
            "output": sum(use.output_tokens for use in uses),
        },
        calls=sum(use.calls for use in uses),
        losses=_merged(use.losses for use in uses),
        cleaned=_merged(use.cleaned for use in uses),
        notes=tuple(notes),
        figures=figures or {},
    )


def _merged(counts: Iterable[Mapping[str, Counter[str]]]) -> dict[str, dict[str, int]]:
    """Counts by model and kind, added up; kinds that did not happen are left out."""
    merged: dict[str, Counter[str]] = {}
    for one in counts:
        for model, kinds in one.items():
            merged.setdefault(model, Counter()).update(kinds)
    return {model: dict(sorted(kinds.items())) for model, kinds in sorted(merged.items())}
