"""Form of the hospitals' texts, from noised answers to a census's questionnaire, compared with the run's texts."""

from collections.abc import Sequence
from dataclasses import dataclass

from server.documents.census import CensusNumbers
from server.documents.files import Document
from server.operators.questionnaire import aims_of

TERMS = 12
"""Number of terms on the page, which shows the terms with the largest `LikenessRow.surprise`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LikenessRow(Document):
    """One answer, or one term.

    Attributes:
        question: Name of the question; empty for a term.
        answer: The answer, or the term.
        records: Estimated fraction of the records.
        band: Half-width of the 95 % interval of `records`, which accounts for the noise alone.
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


def likeness(numbers: CensusNumbers | None, texts: Sequence[str]) -> Likeness | None:
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
