r"""Expected signal and noise of each kind of query: the formulas, which use only public numbers.

The signal is what the records are expected to add to one number in an answer; the noise is the standard deviation that
the mechanism adds to that number. M is the expected total number of records: a guess in the settings, never a count.
Records are assumed to be spread evenly over labels, candidates and parties; with Poisson subsampling at rate q, M is
multiplied by q.

    query                 signal                                                   noise (s: of one number of a sum)
    votes                 M (2 - 2^(1-r)) / n votes for one of n candidates,       s
                          r = min(Q, n / C)
    class sums            0.4 M / C radii, along a direction in which the mean     s
                          of a label's records is 0.4 radii off its centre
    its questionnaire     M / a records with one of the a answers to a question,   s divided by the weight
                          M / 4 records with a term of the list
    label histogram       M / C records of a label                                 s
    label sets            M / C records of a label, if each has one; a pair of     s
                          labels has only the records that have both
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

Here C is the number of labels, L the number of parties, U the number of planned survivors, Q the number of votes per
record in each direction (`VotesSpec.top`) and c the number of choices per party. p = 1 / (n + (K - n) e^(-1/b)) is the
probability of choosing a given one of the n (out of K) abstracts that a record is near to, and p' = p e^(-1/b) is the
probability of choosing any other one. The noise of a sum is stated for a round in which no party is missing: it is the
scale (for Laplace noise, sqrt(2) b) times sqrt(L / U), since each of the L parties adds a U-th of the variance.

Operations on many numbers together are not included: the votes for all texts of a model, or votes smoothed over similar
texts, have more signal than the votes for a single candidate.
"""

import math
from dataclasses import dataclass
from functools import singledispatch
from typing import NamedTuple

from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.queries.class_sums import ClassSumsSpec
from common.queries.closed_set import Spec
from common.queries.correct_count import CorrectCountSpec
from common.queries.histograms import LabelHistogramSpec, LengthHistogramSpec, VocabularySpec
from common.queries.label_sets import LabelSetsSpec
from common.queries.length_range import LengthRangeSpec
from common.queries.questionnaire import QuestionnaireSpec
from common.queries.section_order import SectionOrderSpec
from common.queries.seed_choice import SeedChoiceSpec
from common.queries.self_similarity import SelfSimilaritySpec
from common.queries.sketch import SketchSpec
from common.queries.texts import AbstractedSeedsSpec, FineTunedSpec, RewrittenSpec
from common.queries.votes import VotesSpec
from server.planning.guarantee_facts import noise_error

LEANING = 0.4
"""Guessed distance, in radii, of the mean of a label's records from its public centre along an informative
direction."""

COMMON = 0.25
"""Guessed fraction of the records that contain a term of the list, which consists of common words."""
TERMS = "terms"
"""Name for the terms among the parts of a questionnaire."""
_OF_A_LABEL = {
    LabelHistogramSpec: "records a label",
    LabelSetsSpec: "records a single label (of a pair only those with both, against the same noise)",
    SectionOrderSpec: "records of a section after one other, if all orders are alike",
}
"""Unit of the numbers of a label's records, by query."""
_NOT_ESTIMATED: dict[type[Spec], str] = {
    AbstractedSeedsSpec: "a record chooses among abstractions of itself: other records change nothing",
    FineTunedSpec: "it depends on the size and the gradients of the model, which is the party's own",
    RewrittenSpec: "the texts carry no noise",
}
"""Reasons why there is no estimate, by query."""


class Expected(NamedTuple):
    """Expected signal and noise of one number in an answer.

    Attributes:
        signal: Expected contribution of the records.
        noise: Standard deviation of the noise.
        unit: Unit of the signal and the noise, in the plural, such as votes per candidate.
    """

    signal: float
    noise: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Input to an estimate in addition to the specification.

    Attributes:
        planned: The query, with its noise.
        plan: The run's plan.
        compared: Number of candidates, keywords, abstracts or terms; 0 for a query that compares none.
        records: M, the expected number of records that take part.
        part: Name of a questionnaire's question, or `TERMS`; empty for its class sums, and for other queries.
    """

    planned: PlannedQuery
    plan: Plan
    compared: int
    records: float
    part: str = ""

    @property
    def labels(self) -> int:
        """C, the number of labels."""
        return len(self.plan.labels)

    @property
    def parties(self) -> int:
        """L, the number of parties."""
        return self.plan.parties

    @property
    def surplus(self) -> float:
        """Noise of a sum over all parties, relative to the noise of the planned number of shares."""
        return self.plan.surplus(self.planned, self.parties)

    @property
    def noise(self) -> float:
        """Standard deviation of the noise in each number of a sum over all parties."""
        return self.planned.noise_deviation * self.surplus


@singledispatch
def expected_signal(spec: Spec, setting: Setting) -> Expected | str:
    """Return the signal and noise of a query with this specification, or the reason why there is no estimate."""
    del spec, setting
    return "there is no formula for this kind of query"


@expected_signal.register
def _(spec: VotesSpec, setting: Setting) -> Expected:
    voted = min(spec.top, max(1, setting.compared // setting.labels))
    signal = setting.records * (2 - 2.0 ** (1 - voted)) / setting.compared
    return Expected(signal, setting.noise, "votes a candidate")


@expected_signal.register
def _(spec: ClassSumsSpec, setting: Setting) -> Expected:
    return Expected(
        LEANING * setting.records / spec.labels, setting.noise, "radii of the texts' cloud, along one direction"
    )


@expected_signal.register
def _(spec: QuestionnaireSpec, setting: Setting) -> Expected | str:
    if setting.part == TERMS:
        return Expected(COMMON * setting.records, setting.noise * spec.grid / spec.term, "records with a term")
    for question in spec.questions:
        if question.name == setting.part:
            noise = setting.noise * spec.grid / spec.weight(question)
            return Expected(setting.records / len(question.answers), noise, "records an answer")
    return expected_signal.dispatch(ClassSumsSpec)(spec, setting)


@expected_signal.register(LabelHistogramSpec)
@expected_signal.register(LabelSetsSpec)
@expected_signal.register(SectionOrderSpec)
def _(spec: LabelHistogramSpec | LabelSetsSpec | SectionOrderSpec, setting: Setting) -> Expected:
    return Expected(setting.records / spec.labels, setting.noise, _OF_A_LABEL[type(spec)])


@expected_signal.register
def _(spec: LengthHistogramSpec, setting: Setting) -> Expected:
    return Expected(setting.records / spec.bins, setting.noise, "records a bin")


@expected_signal.register
def _(spec: VocabularySpec, setting: Setting) -> Expected:
    return Expected(setting.records * spec.first / setting.compared, setting.noise, "records a term that is kept")


@expected_signal.register
def _(spec: SketchSpec, setting: Setting) -> Expected:
    rows = spec.features / 2 if spec.paired else spec.features
    noise = noise_error(setting.planned.mechanism, setting.planned.scale / spec.grid, rows) * setting.surplus
    records = setting.records / setting.labels
    if spec.prefix:
        return Expected(records, noise, "records with one sequence of terms")
    return Expected(records / spec.first, noise, "records with one term, in density")


@expected_signal.register
def _(spec: SelfSimilaritySpec, setting: Setting) -> Expected:
    buckets = setting.parties * spec.buckets
    load = setting.records / buckets
    return Expected(buckets * load**2 * math.exp(-load) / 2, setting.noise, "pairs of records")


@expected_signal.register
def _(spec: CorrectCountSpec, setting: Setting) -> Expected:
    del spec
    return Expected(setting.records, setting.noise, "records in all")


@expected_signal.register
def _(spec: LengthRangeSpec, setting: Setting) -> Expected:
    noise = math.sqrt(10) * setting.planned.scale / spec.grid
    return Expected(setting.records / setting.parties, noise, "records a party")


@expected_signal.register
def _(spec: SeedChoiceSpec, setting: Setting) -> Expected | str:
    if not spec.nearest:
        return "graded choices depend on the cosines of the records"
    pool, scale = setting.compared, setting.planned.scale
    odds = math.exp(-1 / scale) if scale else 0.0
    excess = (1 - odds) / (spec.nearest + (pool - spec.nearest) * odds)
    choices = setting.parties * spec.choices
    signal = min(setting.records, choices) * spec.nearest / pool * excess
    return Expected(signal, math.sqrt(choices / pool), "choices an abstract")


@expected_signal.register(AbstractedSeedsSpec)
@expected_signal.register(FineTunedSpec)
@expected_signal.register(RewrittenSpec)
def _(spec: Spec, setting: Setting) -> str:
    del setting
    return _NOT_ESTIMATED[type(spec)]
