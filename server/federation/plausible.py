"""Checks by which the coordinator rejects sums that honest parties cannot have sent; masks hide which party lied.

A party that lies about its vector can change a sum as much as additional records could, since masks hide false values
as well as true ones. Sums that no records can produce are detected, such as a label's sum of vectors that is longer
than the label's count, a candidate with more votes than its label has records, or more records than the parties
declared (`Roster.max_records`).

An honest answer is an integer vector x in a convex set, such as |S_c| <= n_c for class sums; the sum is x plus noise.
Each inequality has a margin for the noise. The margins are chosen so that an honest sum violates any of the
inequalities with a total probability below 1e-9. For Gaussian noise of standard deviation s, a linear functional a x
has the margin 9 s |a|, exceeded with probability 2 exp(-9^2 / 2) at most (the discrete Gaussian is subgaussian), and
the length of k coordinates has the margin s (sqrt(k) + 9). The Laplace noise of any number of parties stays within
`common.plan.plan.NOISE_REACH`, so that a x has the margin |a|_1 times that bound.

A party that stays within these bounds is not detected, whether it answers from false records or merely sends an answer
as if it had them (README, audit).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from common.domain import PartyId
from common.errors import ProtocolError
from common.phrases import Phrase, list_parties
from common.plan.plan import NOISE_REACH, Plan
from common.queries.class_sums import ClassSums, ClassSumsSpec
from common.queries.correct_count import CorrectCount
from common.queries.histograms import LabelHistogram, LengthHistogram, Vocabulary
from common.queries.label_sets import LabelSets
from common.queries.page import Query
from common.queries.questionnaire import Questionnaire
from common.queries.section_order import SectionOrder
from common.queries.self_similarity import SelfSimilarity
from common.queries.sketch import Sketch
from common.queries.votes import Votes

Floats = NDArray[np.float64]
Finding = tuple[str, float, float]
"""Description of a bounded quantity, its value and its bound."""

_REACH = 9.0
"""Margin for Gaussian noise, in standard deviations of a functional (see the top of this module)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Honest:
    """Public facts about an honest sum, from which its bounds are computed.

    Attributes:
        records: Maximum number of records that all parties in the sum can have combined.
        labels: Names of the plan's labels.
        deviation: Standard deviation of a coordinate's Gaussian noise, in grid units; 0 for none.
        largest_noise: Largest Laplace noise of a coordinate, in grid units; 0 for Gaussian noise.
    """

    records: int
    labels: tuple[str, ...]
    deviation: float
    largest_noise: float

    def room(self, weights: Floats | float = 1.0) -> float:
        """Return the margin for the noise in a weighted sum of the coordinates."""
        row = np.atleast_1d(np.asarray(weights, dtype=np.float64))
        return _REACH * self.deviation * float(np.linalg.norm(row)) + self.largest_noise * float(np.abs(row).sum())

    def length(self, coordinates: int) -> float:
        """Return the margin for the length of a noise vector with this number of coordinates."""
        root = math.sqrt(coordinates)
        return self.deviation * (root + _REACH) + self.largest_noise * root


def check_sum(
    query: Query, values: NDArray[np.int64], *, plan: Plan, index: int, survivors: frozenset[PartyId]
) -> None:
    """Check that honest parties can have sent a sum.

    Args:
        query: The query.
        values: (length,) the noised sum, in grid units.
        plan: The plan.
        index: Index of the attempt in the plan.
        survivors: The parties in the sum.

    Raises:
        ProtocolError: The sum is impossible; the message states why, and names the parties in the sum.
    """
    planned = plan.query(index)
    gaussian, groups = planned.mechanism == "gaussian", math.ceil(len(survivors) / plan.shares(planned))
    honest = Honest(
        records=len(survivors) * plan.max_records_per_party,
        labels=plan.labels,
        deviation=planned.scale * plan.surplus(planned, len(survivors)) if gaussian else 0.0,
        largest_noise=0.0 if gaussian else NOISE_REACH * planned.scale * groups,
    )
    for what, value, bound in _bounded(query, values.astype(np.float64), honest):
        if not value <= bound * (1 + 1e-9) + 1e-6:
            raise ProtocolError(
                f"sum of the answers to {planned.name}: {what}",
                expected=f"at most {bound:.4g} grid units, noise included",
                got=f"{value:.4g}, which no records add up to",
                where=Phrase(f"query {index}: ", list_parties(survivors)),
                do="One of them computes something else, or lies: let each run caucus-party check, and begin a new "
                "run; what was asked is paid for, and its answers are not used",
            )


def _bounded(query: Query, values: Floats, honest: Honest) -> Iterator[Finding]:
    """Yield each bounded quantity in a sum for this query."""
    largest = query.spec.largest
    assert largest is not None
    yield "a coordinate", float(np.abs(values).max(initial=0)), largest * honest.records + honest.room()
    yield from _of_kind(query, values, honest)


@singledispatch
def _of_kind(query: Query, values: Floats, honest: Honest) -> Iterator[Finding]:
    """Yield the bounded quantities that only this type of query has."""
    raise NotImplementedError(type(query).__name__)


def _counts(values: Floats, most: float, honest: Honest) -> Iterator[Finding]:
    """Yield the bounds on counts of records: no count is negative, and their total is at most `most`."""
    yield "a negative count", -float(values.min()), honest.room()
    yield "all counts", float(values.sum()), most + honest.room(np.ones(len(values)))


@_of_kind.register
def _(query: Votes, values: Floats, honest: Honest) -> Iterator[Finding]:
    spec = query.spec
    top = spec.grid
    halves = values.reshape(-1, len(query.labels))
    records, weights = 0.0, [np.zeros(0)]
    for label in np.unique(query.labels):
        columns = np.flatnonzero(query.labels == label)
        name = honest.labels[label]
        # A record adds `whole` in each direction, `top` of it at most to one candidate.
        whole = float(2 * top - (2 * top >> min(spec.top, len(columns))))
        votes = halves[:, columns]
        yield f"votes against a text of {name}", -float(votes.min()), honest.room()
        for row in votes:
            single = np.full(len(columns), -float(top))
            single[0] += whole
            excess = whole * float(row.max()) - top * float(row.sum())
            yield f"votes for one text of {name} beyond its records", excess, honest.room(single)
        if len(votes) > 1:
            difference = abs(float(votes[0].sum() - votes[1].sum()))
            yield f"nearest less furthest votes of {name}", difference, honest.room(np.ones(2 * len(columns)))
        records += float(votes[0].sum()) / whole
        weights.append(np.full(len(columns), 1 / whole))
    most = spec.labels_per_record * honest.records
    yield "records behind the votes", records, most + honest.room(np.concatenate(weights))


@_of_kind.register
def _(query: ClassSums, values: Floats, honest: Honest) -> Iterator[Finding]:
    yield from _class_sums(query.spec, values, honest)


@_of_kind.register
def _(query: Questionnaire, values: Floats, honest: Honest) -> Iterator[Finding]:
    spec, start = query.spec, query.spec.sums
    yield from _class_sums(spec, values[:start], honest)
    for question in spec.questions:
        end = start + len(question.answers)
        yield from _counts(values[start:end], spec.weight(question) * honest.records, honest)
        start = end
    if spec.first:
        yield from _counts(values[start:], spec.first * spec.term * honest.records, honest)


def _class_sums(spec: ClassSumsSpec, values: Floats, honest: Honest) -> Iterator[Finding]:
    """Yield the bounded quantities of class sums."""
    rows = values.reshape(spec.labels, spec.directions + 1)
    counts = rows[:, -1]
    yield from _counts(counts, spec.count * spec.labels_per_record * honest.records, honest)
    for name, row in zip(honest.labels, rows, strict=True):
        # Each record adds a vector of length `grid` at most, and `count` to the count.
        longest = spec.grid / spec.count * max(0.0, row[-1] + honest.room()) + honest.length(spec.directions)
        yield f"length of the vectors of {name} relative to its count", float(np.linalg.norm(row[:-1])), longest


@_of_kind.register
def _(query: LabelSets, values: Floats, honest: Honest) -> Iterator[Finding]:
    spec, most = query.spec, query.spec.labels_per_record
    sizes, labels, pairs = np.split(values, [most, most + spec.labels])
    records = spec.grid * honest.records
    yield from _counts(sizes, records, honest)
    yield from _counts(labels, most * records, honest)
    if len(pairs):
        yield from _counts(pairs, most * (most - 1) / 2 * records, honest)


@_of_kind.register
def _(query: SectionOrder, values: Floats, honest: Honest) -> Iterator[Finding]:
    yield from _counts(values, (query.spec.labels_per_record + 1) * query.spec.grid * honest.records, honest)


@_of_kind.register(LabelHistogram)
@_of_kind.register(LengthHistogram)
def _(_: LabelHistogram | LengthHistogram, values: Floats, honest: Honest) -> Iterator[Finding]:
    yield from _counts(values, honest.records, honest)


@_of_kind.register
def _(query: Vocabulary, values: Floats, honest: Honest) -> Iterator[Finding]:
    yield from _counts(values, query.spec.first * honest.records, honest)


@_of_kind.register
def _(_: Sketch, __: Floats, ___: Honest) -> Iterator[Finding]:
    yield from ()  # features have either sign, and their number of records is not asked for


@_of_kind.register
def _(_: SelfSimilarity, values: Floats, honest: Honest) -> Iterator[Finding]:
    cosines, pairs = values
    yield "cosines relative to the number of pairs", abs(cosines) - pairs, honest.room(np.ones(2))


@_of_kind.register
def _(_: CorrectCount, values: Floats, honest: Honest) -> Iterator[Finding]:
    right, counted = values
    yield "a negative count", -right, honest.room()
    yield "correctly classified records relative to all records", right - counted, honest.room(np.ones(2))
