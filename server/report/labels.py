"""Labels of a run's texts and of its records, counted in a simulation or estimated from the method's noised answers."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from server.documents.files import Document
from server.documents.metrics import Metrics
from server.documents.privacy import Privacy
from server.documents.rounds import RoundReport
from server.documents.run import RunSummary
from server.domain import Candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRow(Document):
    """One label in the table of labels.

    Attributes:
        label: The label's name.
        texts: Number of its texts.
        share: The label's fraction of the texts' weights, a text counting under each of its labels; None if there are
            no texts.
        words: Median number of words of its texts; None if the label has no texts.
        records: Number of its records; None unless the records are counted.
        record_share: The label's proportion among the records; None if it is not known.
        recall: Fraction of its test texts to which a classifier trained on the texts gives this label; None if it was
            not measured.
    """

    label: str
    texts: int
    share: float | None
    words: float | None
    records: int | None
    record_share: float | None
    recall: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelTable(Document):
    """The table of labels, with their texts and records. A text or record with several labels counts under each.

    Attributes:
        records: "counted" for exact numbers of private records, only in a simulation; "noised" for noised
            proportions released in the method's answers; None if neither is known.
        simulation_only: Whether the records are counted.
        weighted: Whether the texts have different weights.
        several: Whether a text has several labels; shares are then of all labels of texts or of records.
        rows: The labels.
    """

    records: str | None
    simulation_only: bool
    weighted: bool = False
    several: bool = False
    rows: tuple[LabelRow, ...]


def by_label(
    run: RunSummary | None,
    privacy: Privacy | None,
    rounds: Sequence[RoundReport],
    metrics: Metrics,
    texts: Sequence[Candidate],
) -> LabelTable:
    """Return the table of labels of a run folder; any of its documents may be missing."""
    shares, exact = record_shares(privacy, rounds, metrics)
    number = _number(metrics) if exact else None
    weights, words = weights_of(texts), _words(texts)
    total = sum(weights.values())
    named = (run and run.labels) or {}
    recalled = metrics.synthetic.recalled if metrics.synthetic else {}
    rows = tuple(
        LabelRow(
            label=label,
            texts=len(words.get(label, ())),
            share=weights[label] / total if total > 0 else None,
            words=statistics.median(words[label]) if label in words else None,
            records=None if number is None else round(number * shares.get(label, 0.0)),
            record_share=shares.get(label, 0.0) if shares else None,
            recall=recalled[label][0] / recalled[label][1] if label in recalled else None,
        )
        for label in dict.fromkeys([*named, *sorted(words), *sorted(shares)])
    )
    source = ("counted" if exact else "noised") if shares else None
    return LabelTable(
        records=source,
        simulation_only=exact,
        weighted=len({text.weight for text in texts}) > 1,
        several=any(len(text.labels) > 1 for text in texts),
        rows=rows,
    )


def weights_of(texts: Sequence[Candidate]) -> Counter[str]:
    """Return the sum of the texts' weights for each label; a text with several labels counts under each."""
    weights: Counter[str] = Counter()
    for text in texts:
        for label in text.labels:
            weights[label] += text.weight  # type: ignore[assignment]
    return weights


def record_shares(
    privacy: Privacy | None, rounds: Sequence[RoundReport], metrics: Metrics
) -> tuple[Mapping[str, float], bool]:
    """Return each label's proportion among the records (empty if unknown), and whether the proportions are exact.

    Only a simulation has exact proportions. A method that asks for proportions has noised proportions in its rounds. If
    its answers have no noise, these are exact proportions of private records and are not used.
    """
    if privacy is None:
        return {}, False
    if privacy.simulation and (exact := metrics.label_shares) and exact.records:
        return exact.records, True
    if not privacy.noisy:
        return {}, False
    return next((report.label_shares for report in reversed(rounds) if report.label_shares), {}), False


def _number(metrics: Metrics) -> int | None:
    """Return the number of all private records, taken from `real_private` in older folders; None if unknown."""
    counted = metrics.label_shares and metrics.label_shares.count
    return counted if counted is not None else metrics.real_private and metrics.real_private.records


def _words(texts: Sequence[Candidate]) -> dict[str, list[int]]:
    lengths: dict[str, list[int]] = {}
    for text in texts:
        for label in text.labels:
            lengths.setdefault(label, []).append(len(text.text.split()))
    return lengths
