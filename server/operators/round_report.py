"""The method's part of a round's report: the requests to the models, and the texts that they wrote."""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from server.documents.rounds import RoundReport, Tokens
from server.domain import Candidate
from server.llm.generate import Generated, Written
from server.llm.use import Use

log = logging.getLogger("caucus.llm")


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
    total = Use()
    for output in work:
        total.merge(output.use)
    silent = [
        f"{model} wrote no usable text (requested: {count}), so other models were asked instead"
        for model, count in total.passed_on.items()
    ]
    for note in silent:
        log.warning("round %d: %s", number + 1, note)
    return RoundReport(
        round=number,
        requested={model: requested.get(model, 0) for model in models},
        generated={model: written[model] for model in models},
        lost={model: requested.get(model, 0) - written[model] for model in models},
        candidates=candidates,
        tokens=Tokens(
            input=total.input_tokens,
            cached=total.cached_tokens,
            output=total.output_tokens,
        ),
        calls=total.calls,
        losses=_in_order(total.losses),
        cleaned=_in_order(total.cleaned),
        notes=(*notes, *silent),
        figures=figures or {},
        prompts=total.exchanges,
        lost_replies=dict(sorted(total.samples.items())),
    )


def _in_order(counts: Mapping[str, Counter[str]]) -> dict[str, dict[str, int]]:
    """Return the counts by model and kind, both in alphabetical order."""
    return {model: dict(sorted(kinds.items())) for model, kinds in sorted(counts.items())}
