"""What the rounds of all methods share: orders to the models, labels as numbers, and the round's line in the report."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from server.domain import Candidate, Task
from server.llm.generate import Generated, Written
from server.llm.spending import Spending


def label_numbers(candidates: Sequence[Candidate], task: Task) -> NDArray[np.int32]:
    """(candidates,) position of each one's label in the plan."""
    labels = list(task.labels)
    return np.array([labels.index(candidate.label) for candidate in candidates], dtype=np.int32)


def sums(amounts: Iterable[tuple[str, int]]) -> Counter[str]:
    """Sums of amounts by name."""
    added: Counter[str] = Counter()
    for name, amount in amounts:
        added[name] += amount
    return added


def report(
    number: int,
    models: Sequence[str],
    *,
    requested: Mapping[str, int],
    generated: Iterable[Candidate],
    candidates: int,
    work: Iterable[Generated | Written],
    notes: Iterable[str] = (),
) -> dict[str, Any]:
    """A round's line of `rounds.jsonl`, to which `server/run.py` adds queries, seconds and FID.

    Args:
        number: The round.
        models: Names of the language models.
        requested: By model, the texts asked for that were to become candidates.
        generated: Those that did.
        candidates: How many there are now.
        work: All that models wrote, also what is no candidate.
        notes: What a reader should know.
    """
    written = Counter(candidate.model for candidate in generated)
    uses = [each.use for each in work]
    return {
        "round": number,
        "requested": {model: requested.get(model, 0) for model in models},
        "generated": {model: written[model] for model in models},
        "lost": {model: requested.get(model, 0) - written[model] for model in models},
        "candidates": candidates,
        "tokens": {
            "input": sum(use.input_tokens for use in uses),
            "cached": sum(use.cached_tokens for use in uses),
            "output": sum(use.output_tokens for use in uses),
        },
        "calls": sum(use.calls for use in uses),
        "losses": _merged(use.losses for use in uses),
        "cleaned": _merged(use.cleaned for use in uses),
        "queries": [],
        "notes": list(notes),
    }


def paid(spending: Spending, before: Iterable[Mapping[str, Any]] = ()) -> dict[str, dict[str, Any]]:
    """What remote models were paid in this run, by name, less what the lines of the rounds before say.

    So a round's line has all that was paid for the round, by whatever process before and after a crash.
    """
    amounts = {model: paid.to_dict() for model, paid in spending.paid().items()}
    for line in before:
        for model, part in line.get("paid", {}).items():
            own = amounts[model]
            amounts[model] = {
                kind: None if own[kind] is None or part[kind] is None else round(own[kind] - part[kind], 6)
                for kind in own
            }
    return {model: amount for model, amount in amounts.items() if amount["replies"]}


def _merged(counts: Iterable[Mapping[str, Counter[str]]]) -> dict[str, dict[str, int]]:
    """Counts by model and kind, added up; kinds that did not happen are left out."""
    merged: dict[str, Counter[str]] = {}
    for one in counts:
        for model, kinds in one.items():
            merged.setdefault(model, Counter()).update(kinds)
    return {model: dict(sorted(kinds.items())) for model, kinds in sorted(merged.items())}
