r"""What each planned query can tell: its expected signal and its noise, from public numbers alone.

The signal is what the records are expected to add to one number of an answer, the noise is that number's standard
deviation by what protects it. M is the expected number of records in all: a setting, a guess, never a count. Records
are taken to be spread evenly over labels, candidates and parties; with Poisson subsampling at rate q, M is q M.

    query                 signal                                                   noise, s of one number of a sum
    votes                 M (2 - 2^(1-r)) / n votes for one of n candidates,       s
                          r = min(Q, n / C)
    label histogram       M / C records of a label                                 s
    length histogram      M / bins records in a bin                                s
    vocabulary histogram  M k / n records with one of the n terms that are kept    s
    density sketch        M / (C k) for a term that all records of a label have,   that of the density times M / C
                          M / C for a sequence                                     (`guarantee_facts.noise_error`)
    self-similarity       L B l^2 e^-l / 2 pairs, l = M / (L B) records a bucket   s
    correct count         M records                                                s
    length range          M / L records at a party                                 sqrt(10) b: of Laplace noise b on the
                                                                                   threshold and 2 b on a count
    seed choice           min(M, L c) (p - p') n / K more choices of an abstract   sqrt(L c / K), of choices at random
                          than by chance

Here C is the number of labels, L of parties, c of a party's choices, p = 1 / (n + (K - n) e^(-1/b)) the probability of
choosing a given one of the n of K abstracts that a record is near to, and p' = p e^(-1/b) that of any other one. The
noise of a sum is that of a round in which nobody is missing: its scale, sqrt(2) b for Laplace noise, times
sqrt(L / U), since all L parties add a U-th of the variance.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import NamedTuple

from scipy.special import ndtr

from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.queries.closed_set import Spec
from common.queries.correct_count import CorrectCountSpec
from common.queries.histograms import LabelHistogramSpec, LengthHistogramSpec, VocabularySpec
from common.queries.length_range import LengthRangeSpec
from common.queries.seed_choice import SeedChoiceSpec
from common.queries.self_similarity import SelfSimilaritySpec
from common.queries.sketch import SketchSpec
from common.queries.texts import AbstractedSeedsSpec, FineTunedSpec, RewrittenSpec
from common.queries.votes import VotesSpec
from server.planning.guarantee_facts import noise_error

HOPELESS = 0.5
"""Signal to noise below which an answer is noise: of a candidate with the expected votes and one without any, the noise
ranks more than one pair in three wrongly, Phi(-0.5 / sqrt(2)) = 0.36; of candidates that differ by less, yet more."""
CLEAR = 3.0
"""Signal to noise from which an answer is clear: one such pair in 60 is ranked wrongly, Phi(-3 / sqrt(2)) = 0.017."""

LEANING = 0.4
"""Radii by which the mean of a label's records lies off its public centre along a direction: what was measured for real
texts along the directions that matter."""

_STEP = 1.1
"""Ratio of the numbers of records that are tried. A signal that falls with more records has a peak wider than that."""


class Expected(NamedTuple):
    """What one number of an answer is expected to be made of.

    Attributes:
        signal: Expected contribution of the records.
        noise: Standard deviation of the noise.
        unit: Of both, in the plural: "votes a candidate".
    """

    signal: float
    noise: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What an estimate is made from besides the specification.

    Attributes:
        planned: The query, with its noise.
        plan: Its plan.
        compared: Number of candidates, keywords, abstracts or terms; 0 for a query without any.
        records: M, the expected number of records that take part.
    """

    planned: PlannedQuery
    plan: Plan
    compared: int
    records: float

    @property
    def labels(self) -> int:
        """C."""
        return len(self.plan.labels)

    @property
    def parties(self) -> int:
        """L."""
        return self.plan.parties

    @property
    def surplus(self) -> float:
        """Noise of a sum that misses nobody, in that of the planned shares alone."""
        return math.sqrt(self.parties / self.plan.shares(self.planned))

    @property
    def noise(self) -> float:
        """Standard deviation of one number of a sum."""
        return self.planned.noise_deviation * self.surplus


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """The expected signal of one planned query.

    Attributes:
        query: Name of the query.
        kind: Its kind.
        expected: Signal and noise; None where there is no estimate.
        records: M; None if no number is expected.
        reason: Why there is no estimate; empty if there is one.
        clear_from: Least number of records with which the signal is `CLEAR`; None if no number of records is enough.
    """

    query: str
    kind: str
    expected: Expected | None
    records: int | None
    reason: str = ""
    clear_from: int | None = None

    @property
    def ratio(self) -> float:
        """Signal to noise; infinite without noise, NaN without an estimate."""
        if self.expected is None:
            return math.nan
        return self.expected.signal / self.expected.noise if self.expected.noise else math.inf

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        if self.expected is None:
            return {"not_estimated": self.reason, "clear_from_records": self.clear_from}
        told = {**self.expected._asdict(), "ratio": self.ratio}
        # Of two candidates, one with the expected votes and one without any.
        return told | {"ranked_rightly": float(ndtr(self.ratio / math.sqrt(2))), "clear_from_records": self.clear_from}


def signals(plan: Plan, compared: Mapping[str, int], records: int | None) -> list[Signal]:
    """The expected signal of each query of a calibrated plan, in the plan's order.

    Args:
        plan: With its noise.
        compared: By query, number of candidates and the like (`server.method.Method.compared`).
        records: M, or None if no number is expected: then only `clear_from` is known.
    """
    return [_signal(plan, planned, compared.get(planned.name, 0), records) for planned in plan.queries]


def weakest(estimates: Sequence[Signal]) -> Signal | None:
    """The query with the lowest signal to noise; None if none has an estimate."""
    return min((each for each in estimates if each.expected), key=lambda each: each.ratio, default=None)


def records_for(ratio: float, plan: Plan, planned: PlannedQuery, compared: int) -> int | None:
    """The least number of records with which a query's signal is `ratio` times its noise; None if there is none."""

    def enough(records: int) -> bool:
        found = _expected(plan, planned, compared, records)
        return not isinstance(found, str) and found.signal >= ratio * found.noise

    low, high, most = 0, 1, plan.parties * plan.max_records_per_party
    while not enough(high):
        if high == most:
            return None
        low, high = high, min(max(high + 1, round(_STEP * high)), most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _signal(plan: Plan, planned: PlannedQuery, compared: int, records: int | None) -> Signal:
    found = _expected(plan, planned, compared, 1 if records is None else records)
    known = None if isinstance(found, str) or records is None else found
    return Signal(
        query=planned.name,
        kind=planned.spec.kind,
        expected=known,
        records=records,
        reason="" if known else found if isinstance(found, str) else "no number of records is expected",
        clear_from=records_for(CLEAR, plan, planned, compared),
    )


def _expected(plan: Plan, planned: PlannedQuery, compared: int, records: float) -> Expected | str:
    if isinstance(planned.spec, (VotesSpec, VocabularySpec, SeedChoiceSpec)) and not compared:
        return "the method does not say among how many the records choose"
    setting = Setting(planned=planned, plan=plan, compared=compared, records=records * planned.rate)
    return expected(planned.spec, setting)


@singledispatch
def expected(spec: Spec, setting: Setting) -> Expected | str:
    """Signal and noise of a query with this specification, or why there is no estimate."""
    del spec, setting
    return "there is no formula for this kind of query"


@expected.register
def _(spec: VotesSpec, setting: Setting) -> Expected:
    voted = min(spec.top, max(1, setting.compared // setting.labels))
    signal = setting.records * (2 - 2.0 ** (1 - voted)) / setting.compared
    return Expected(signal, setting.noise, "votes a candidate")


@expected.register
def _(spec: LabelHistogramSpec, setting: Setting) -> Expected:
    return Expected(setting.records / spec.labels, setting.noise, "records a label")


@expected.register
def _(spec: LengthHistogramSpec, setting: Setting) -> Expected:
    return Expected(setting.records / spec.bins, setting.noise, "records a bin")


@expected.register
def _(spec: VocabularySpec, setting: Setting) -> Expected:
    return Expected(setting.records * spec.first / setting.compared, setting.noise, "records a term that is kept")


@expected.register
def _(spec: SketchSpec, setting: Setting) -> Expected:
    rows = spec.features / 2 if spec.paired else spec.features
    noise = noise_error(setting.planned.mechanism, setting.planned.scale / spec.grid, rows) * setting.surplus
    records = setting.records / setting.labels
    if spec.prefix:
        return Expected(records, noise, "records with one sequence of terms")
    return Expected(records / spec.first, noise, "records with one term, in density")


@expected.register
def _(spec: SelfSimilaritySpec, setting: Setting) -> Expected:
    buckets = setting.parties * spec.buckets
    load = setting.records / buckets
    return Expected(buckets * load**2 * math.exp(-load) / 2, setting.noise, "pairs of records")


@expected.register
def _(spec: CorrectCountSpec, setting: Setting) -> Expected:
    del spec
    return Expected(setting.records, setting.noise, "records in all")


@expected.register
def _(spec: LengthRangeSpec, setting: Setting) -> Expected:
    noise = math.sqrt(10) * setting.planned.scale / spec.grid
    return Expected(setting.records / setting.parties, noise, "records a party")


@expected.register
def _(spec: SeedChoiceSpec, setting: Setting) -> Expected | str:
    if not spec.nearest:
        return "graded choices depend on the cosines of the records"
    pool, scale = setting.compared, setting.planned.scale
    odds = math.exp(-1 / scale) if scale else 0.0
    excess = (1 - odds) / (spec.nearest + (pool - spec.nearest) * odds)
    choices = setting.parties * spec.choices
    signal = min(setting.records, choices) * spec.nearest / pool * excess
    return Expected(signal, math.sqrt(choices / pool), "choices an abstract")


@expected.register
def _(spec: AbstractedSeedsSpec, setting: Setting) -> str:
    del spec, setting
    return "a record chooses among abstractions of itself: other records change nothing"


@expected.register
def _(spec: FineTunedSpec, setting: Setting) -> str:
    del spec, setting
    return "it depends on the size and the gradients of the model, which is the party's own"


@expected.register
def _(spec: RewrittenSpec, setting: Setting) -> str:
    del spec, setting
    return "the texts carry no noise"


_REMEDIES = {VotesSpec.kind: ", a larger epsilon, fewer candidates or method=census"}


def hopeless(estimates: Sequence[Signal]) -> list[str]:
    """A sentence on each query whose answers will be noise."""
    return [_sentence(each) for each in estimates if each.ratio < HOPELESS]


def advice(estimates: Sequence[Signal]) -> list[str]:
    """A sentence on each query that is not clear: whose answers will be noise or weak, or that has no estimate."""
    return [_sentence(each) for each in estimates if not each.ratio >= CLEAR]


def _sentence(signal: Signal) -> str:
    takes = f"{signal.clear_from:,} for {CLEAR:g} times the noise" if signal.clear_from else ""
    if signal.expected is None:
        return f"{signal.query}: not estimated: {signal.reason}{takes and f'; it takes {takes}'}"
    expected, noise, unit = signal.expected
    what = "noise" if signal.ratio < HOPELESS else "weak"
    return (
        f"{signal.query} will be {what}: {expected:.2g} {unit} against {noise:.2g} of noise if there are "
        f"{signal.records:,} records; it takes more records{takes and f' ({takes})'}"
        f"{_REMEDIES.get(signal.kind, ' or a larger epsilon')}"
    )
