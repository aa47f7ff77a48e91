"""How a run's texts compare with its records, by label and by form; and which labels a classifier of them confuses.

Records of each label are counted in a simulation, or estimated from the method's noised answers. Forms of the records'
texts are known from noised answers to a questionnaire.
"""

import statistics
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from server.documents.class_sums import ClassSumsNumbers
from server.documents.files import Document
from server.documents.metrics import Metrics
from server.documents.privacy import Privacy
from server.documents.rounds import RoundReport
from server.documents.run import RunSummary
from server.domain import Candidate
from server.operators.questionnaire import aims_of

MOST_CONFUSED = 10
"""Maximum number of labels for which the page shows a matrix, and number of confusions that it lists in place of a
larger matrix."""
TERMS = 12
"""Number of terms on the page, which shows the terms with the largest `LikenessRow.surprise`."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Confused(Document):
    """Test texts of one label for which the classifier predicts another label.

    Attributes:
        label: The true label.
        predicted: The label that the classifier predicts.
        texts: Number of these test texts.
        tested: Number of all test texts with the true label.
    """

    label: str
    predicted: str
    texts: int
    tested: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion(Document):
    """True and predicted labels of the test texts.

    Attributes:
        labels: The labels of rows and columns; empty if there are more than `MOST_CONFUSED` labels, or if nothing was
            measured.
        letters: A letter for each label, for the head of its column.
        counts: (labels, labels) number of test texts for each true label and each predicted label.
        most: The most frequent confusions, at most `MOST_CONFUSED`, the most frequent first.
    """

    labels: tuple[str, ...]
    letters: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    most: tuple[Confused, ...]


def list_labels(
    run: RunSummary | None,
    privacy: Privacy | None,
    rounds: Sequence[RoundReport],
    metrics: Metrics,
    texts: Sequence[Candidate],
) -> LabelTable:
    """Return the table of labels of a run folder; any of its documents may be missing."""
    shares, exact = record_shares(privacy, rounds, metrics)
    number = metrics.count("label_shares", "count") if exact else None
    if exact and number is None:  # an earlier version's
        number = metrics.count("real_private", "records")
    weights, words = weights_of(texts), _words(texts)
    total = sum(weights.values())
    named = (run and run.labels) or {}
    confused = metrics.confusion
    rows = tuple(
        LabelRow(
            label=label,
            texts=len(words.get(label, ())),
            share=weights[label] / total if total > 0 else None,
            words=statistics.median(words[label]) if label in words else None,
            records=None if number is None else round(number * shares.get(label, 0.0)),
            record_share=shares.get(label, 0.0) if shares else None,
            recall=confused[label].get(label, 0) / sum(confused[label].values()) if label in confused else None,
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


def list_confusions(matrix: Mapping[str, Mapping[str, int]], order: Sequence[str] = ()) -> Confusion:
    """Return a matrix of `metrics.json` as the page shows it.

    Args:
        matrix: Number of test texts for each true label and each predicted label, without zeros.
        order: Labels in the order of the page; labels that are missing here follow.
    """
    measured = {*matrix, *(predicted for row in matrix.values() for predicted in row)}
    labels = tuple(label for label in dict.fromkeys([*order, *sorted(measured)]) if label in measured)
    errors = [
        Confused(label=label, predicted=predicted, texts=texts, tested=sum(row.values()))
        for label, row in matrix.items()
        for predicted, texts in row.items()
        if predicted != label
    ]
    shown = labels if len(labels) <= MOST_CONFUSED else ()
    return Confusion(
        labels=shown,
        letters=tuple(string.ascii_uppercase[: len(shown)]),
        counts=tuple(tuple(matrix.get(label, {}).get(predicted, 0) for predicted in shown) for label in shown),
        most=tuple(sorted(errors, key=lambda error: -error.texts)[:MOST_CONFUSED]),
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
    exact = metrics.group("label_shares", "records")
    if privacy.simulation and exact:
        return exact, True
    if not privacy.noisy:
        return {}, False
    return next((report.label_shares for report in reversed(rounds) if report.label_shares), {}), False


def _words(texts: Sequence[Candidate]) -> dict[str, list[int]]:
    lengths: dict[str, list[int]] = {}
    for text in texts:
        for label in text.labels:
            lengths.setdefault(label, []).append(len(text.text.split()))
    return lengths


@dataclass(frozen=True, slots=True, kw_only=True)
class LikenessRow(Document):
    """One answer, or one term.

    Attributes:
        question: Name of the question; empty for a term.
        answer: The answer, or the term.
        records: Estimated fraction of the records.
        band: Half-width of the 95% interval of `records`, which accounts for the noise alone.
        texts: Fraction of the run's texts; None if there are no texts.
    """

    question: str
    answer: str
    records: float
    band: float
    texts: float | None

    @property
    def surprise(self) -> float:
        """Difference between `records` and `texts`, divided by `band`; 0 without texts."""
        return 0.0 if self.texts is None else abs(self.records - self.texts) / self.band


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness(Document):
    """The answers to the questions, and the terms that differ most."""

    answers: tuple[LikenessRow, ...]
    terms: tuple[LikenessRow, ...]


def likeness(numbers: ClassSumsNumbers | None, texts: Sequence[str]) -> Likeness | None:
    """Return the comparison; None if there are no answers, or if they have no noise and so are private counts."""
    if numbers is None or numbers.questionnaire is None:
        return None
    asked = numbers.questionnaire
    if 0 in (numbers.noise, asked.noise, *([asked.term_noise] if asked.listed else [])):
        return None
    aimed = aims_of(numbers)
    shares = aimed.features(texts).mean(axis=0).tolist() if texts else [None] * len(aimed.shares)
    rows = [
        LikenessRow(question=question, answer=answer, records=records, band=band, texts=share)
        for (question, answer, records, band), share in zip(aimed.rows(), shares, strict=True)
    ]
    terms = sorted((row for row in rows if not row.question), key=lambda row: -row.surprise)
    return Likeness(answers=tuple(row for row in rows if row.question), terms=tuple(terms[:TERMS]))
