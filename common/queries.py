"""The closed set of private queries: what a party can be asked, and how far one privacy unit can move the answer.

A query has a public specification (here), which the plan fixes, prices and hashes before anything private is touched,
and an asked form (`common/asked.py`), which adds what the coordinator learns to ask about during the run. Each answer
is a vector of integers. A query that is not in this file, or in `common/text_queries.py`, cannot be asked.

    specification        one record adds                              noise                     answer of L parties
    VotesSpec            integers 2^(Q-q) to its Q nearest (furthest) Gaussian, Laplace         sum
    LabelHistogramSpec   1 to its label                               Laplace, Gaussian         sum
    LengthHistogramSpec  1 to the bin of its length                   Laplace, Gaussian         sum
    VocabularySpec       1 to each of its first k terms               Laplace, Gaussian         sum
    SketchSpec           random Fourier features of its phrases       Gaussian, Laplace         sum
    SelfSimilaritySpec   the cosine of its pair, and 1                Laplace, Gaussian         sum
    CorrectCountSpec     1 if a model is right on it, and 1           Laplace, Gaussian         sum
    LengthRangeSpec      1 to "how many are longer than x"            sparse vector, in a party one each
    SeedChoiceSpec       its choice of a candidate                    noisy max, in a party     one each
    TextSpec             a text: three kinds in `text_queries`        see there                 one each

A keyword histogram (each record votes for the nearest keyword of its label) is `VotesSpec(top=1, furthest=False)`.

Two data sets are neighbours if one has one unit more. A unit is a record, or at user level all records of one user, of
which a party keeps at most m = `max_records` by a rule that looks at that user's records only. Adding those m one after
the other, the changes add up, so by the triangle inequality l1 and l2 are at most m times those of one record. Each
proof below is therefore for one record. All but the last ones are sums over the parties' disjoint records; one
record is in one party, so the bounds hold for the sum as they stand, and for answers side by side too.

Each specification says besides: `kind`, its name; `mechanisms` that may make it private; `grid`, the integer units in
one vote, record, cosine or feature; `sensitivity` of the answer on that grid; and, for sums, `largest`, the most that
one record can add to a coordinate.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, get_args

from common.errors import ConfigError
from common.privacy.mechanisms import SUMMED
from common.privacy.sensitivity import Sensitivity
from common.text_queries import UNPROVEN, TextSpec
from common.validate import flags, integers_in

MOST_VOTES = 20
"""Largest Q: keeps 2^(Q-1) times any plausible number of records far below 2^63."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VotesSpec:
    r"""Nearest and furthest votes of WASP (section 3.3), on the integer grid that is `grid` = f 2^(Q-1) times votes.

    A record gives its q-th nearest candidate of its own label 2^-(q-1) votes, q = 1..Q, and, in a second half of the
    vector, its q-th furthest candidate the same. On the grid these are the integers f 2^(Q-q).

    Which candidates a record ranks where depends on that record and on public candidates alone, so the change is this
    record's own contribution. Its label has n candidates and it ranks r = min(Q, n) of them, in each direction all
    different. So, in units of f, the nearest half changes in exactly r coordinates, by 2^(Q-1), 2^(Q-2), ..., 2^(Q-r),
    and so does the furthest half. The halves are separate coordinates even if a candidate is among the nearest and the
    furthest (certain for n < 2Q); in one common histogram both would land on one coordinate and n = 2 would give an l2
    change of 2.121 votes. r < Q drops the smallest changes and moves nothing more, so r = Q is the worst case:

        l1 = k f (2^Q - 1),   l2^2 = k f^2 (4^Q - 1) / 3   on the grid, with k = 2 halves (1 without the furthest),

    in votes l2^2 = (k 4/3)(1 - 4^-Q). Both are reached as soon as n >= Q.

    Attributes:
        top: Q >= 1, votes of one record in each direction.
        furthest: Whether the furthest candidates are voted on too.
        fine: f >= 1, grid units in the smallest vote: for few votes and many parties, whose shares of noise would
            otherwise be too small for whole numbers.
        max_records: m, the records that one privacy unit may hold; 1 is sample level.
    """

    kind: ClassVar[str] = "votes"
    mechanisms: ClassVar[tuple[str, ...]] = SUMMED
    top: int
    furthest: bool = True
    fine: int = 1
    max_records: int = 1

    def __post_init__(self) -> None:
        integers_in(1, MOST_VOTES, top=self.top)
        integers_in(1, 2**20, max_records=self.max_records)
        integers_in(1, 2**10, fine=self.fine)
        flags(furthest=self.furthest)

    @property
    def grid(self) -> int:
        """Grid units in one vote: f 2^(Q-1)."""
        return self.fine << (self.top - 1)

    @property
    def sensitivity(self) -> Sensitivity:
        """Of the sum, on the grid."""
        half = tuple(self.fine << q for q in range(self.top))
        return Sensitivity.of(tuple(sorted(half + half)) if self.furthest else half, self.max_records)

    @property
    def largest(self) -> int:
        """Largest value that one record can add to a coordinate."""
        return self.grid

    @property
    def paper_l1(self) -> float:
        """The bound, in votes, that WASP's paper takes for the l2 sensitivity: 2 for each direction, 1 for Top-1."""
        return (1.0 if self.top == 1 else 2.0) * (2 if self.furthest else 1) * self.max_records


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelHistogramSpec:
    """How many records have each label of the plan.

    A record has one label and adds 1 there; records of labels outside the plan add nothing. l1 = l2 = 1.

    Attributes:
        labels: C, labels of the plan.
        max_records: m.
    """

    kind: ClassVar[str] = "label histogram"
    mechanisms: ClassVar[tuple[str, ...]] = SUMMED
    grid: ClassVar[int] = 1
    largest: ClassVar[int] = 1
    labels: int
    max_records: int = 1

    def __post_init__(self) -> None:
        integers_in(1, 2**20, labels=self.labels, max_records=self.max_records)

    @property
    def sensitivity(self) -> Sensitivity:
        """Of the sum, on the grid."""
        return Sensitivity.of((1,), self.max_records)


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthHistogramSpec:
    """How many records have a length, in words, within each bin (DPGA-TextSyn, section 3.2).

    The bins are public and disjoint and cover everything: shorter texts than the first and longer ones than the last
    count in these. A record adds 1 to one bin. l1 = l2 = 1.

    Attributes:
        bins: How many.
        max_records: m.
    """

    kind: ClassVar[str] = "length histogram"
    mechanisms: ClassVar[tuple[str, ...]] = SUMMED
    grid: ClassVar[int] = 1
    largest: ClassVar[int] = 1
    bins: int = 100
    max_records: int = 1

    def __post_init__(self) -> None:
        integers_in(1, 2**20, bins=self.bins, max_records=self.max_records)

    @property
    def sensitivity(self) -> Sensitivity:
        """Of the sum, on the grid."""
        return Sensitivity.of((1,), self.max_records)


@dataclass(frozen=True, slots=True, kw_only=True)
class VocabularySpec:
    """In how many records each term of a public vocabulary is among the first k (DP-KPS, section 2).

    The vocabulary is public, every one of its terms has a coordinate with noise, zero counts too, and which terms of a
    text are its first k distinct ones is computed from that text alone. So a record adds 1 to at most k coordinates:
    l1 = k, l2 = sqrt(k).

    Attributes:
        first: k.
        max_records: m.
    """

    kind: ClassVar[str] = "vocabulary histogram"
    mechanisms: ClassVar[tuple[str, ...]] = SUMMED
    grid: ClassVar[int] = 1
    largest: ClassVar[int] = 1
    first: int
    max_records: int = 1

    def __post_init__(self) -> None:
        integers_in(1, 2**10, first=self.first)
        integers_in(1, 2**20, max_records=self.max_records)

    @property
    def sensitivity(self) -> Sensitivity:
        """Of the sum, on the grid."""
        return Sensitivity.of((1,) * self.first, self.max_records)


@dataclass(frozen=True, slots=True, kw_only=True)
class SketchSpec:
    """Sketch of a kernel density of each label's phrases (DP-KPS, sections 2 and A.2; Wagner et al. 2023).

    A record's points are its first k terms of the vocabulary, each as its public vector; or one point, its first
    `prefix` terms side by side, blocks behind the last term zero. A point x has I features:

        single:  sqrt(2) cos(sqrt(2) w_i . x + b_i),            i = 1..I,     each in [-sqrt(2), sqrt(2)]
        paired:  cos(sqrt(2) w_i . x), sin(sqrt(2) w_i . x),    i = 1..I/2,   each pair of norm 1

    with public frequencies w and phases b. The record adds, to the I coordinates of its own label, the mean of its
    points' features times B, rounded toward zero; a record without terms adds nothing. Vectors, frequencies and phases
    being public, that depends on the record alone. Means leave the bounds as they are, and rounding toward zero makes
    no value larger. So on the grid

        single:  I coordinates of at most s = floor(sqrt(2) B), hence l1 = I s, l2^2 = I s^2
        paired:  l2^2 <= B^2 I / 2, hence l1 <= I B / sqrt(2) by Cauchy and Schwarz.

    Cosines are computed in floating point, to about 1e-15; the bounds are rounded up by more than that can add, and
    the contribution is cut off at s, or at B, besides. Single features with Laplace noise are the paper's pure DP;
    paired features with Gaussian noise need noise in proportion to sqrt(I) instead of I.

    Attributes:
        labels: C, labels of the plan; the answer has C I coordinates, label by label.
        features: I.
        paired: Paired features.
        first: k, terms of a record that count.
        prefix: 0 for the mean over single terms; else how many terms, side by side, make the one point.
        grid: B, grid units in 1.
        max_records: m.
    """

    kind: ClassVar[str] = "density sketch"
    mechanisms: ClassVar[tuple[str, ...]] = SUMMED
    labels: int
    features: int
    paired: bool = True
    first: int = 10
    prefix: int = 0
    grid: int = 64
    max_records: int = 1

    def __post_init__(self) -> None:
        integers_in(1, 2**20, labels=self.labels, max_records=self.max_records)
        integers_in(1, 2**16, features=self.features)
        integers_in(1, 2**10, first=self.first)
        integers_in(0, self.first, prefix=self.prefix)
        integers_in(1, 2**20, grid=self.grid)
        flags(paired=self.paired)
        if self.paired and self.features % 2:
            raise ConfigError("features", expected="an even number of paired ones", got=self.features)

    @property
    def sensitivity(self) -> Sensitivity:
        """Of the sum, on the grid."""
        if not self.paired:
            return Sensitivity.of((self.largest,) * self.features, self.max_records)
        l2_squared = self.features * self.grid**2 // 2 + 1
        return Sensitivity(
            l1=math.isqrt(self.features * l2_squared) * self.max_records + self.max_records,
            l2_squared=l2_squared * self.max_records**2,
            touched=self.features * self.max_records,
        )

    @property
    def largest(self) -> int:
        """Largest value that one record can add to a coordinate."""
        return self.grid if self.paired else math.isqrt(2 * self.grid**2)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfSimilaritySpec:
    """Mean cosine of pairs of records (DPGA-TextSyn's starting tau): the sum of cosines, and the number of pairs.

    A keyed digest of a record's text and label puts it into one of `buckets`; equal records are told apart by number,
    so that taking one away takes away the last. A bucket that holds exactly two records makes a pair, no other does.
    Which bucket a record goes to does not depend on other records, so one record more changes one bucket: from one to
    two records a pair comes, from two to three it goes, else nothing happens. So the sum changes by one cosine, at most
    B on the grid rounded toward zero, and the number of pairs, in units of B too, by B: l1 = 2 B, l2^2 = 2 B^2.
    With as many buckets as records 37 % of the records are in pairs, the most that can be hoped for.

    Attributes:
        buckets: A public number, about that of all records of one party.
        grid: B, grid units in 1.
        max_records: m.
    """

    kind: ClassVar[str] = "self-similarity"
    mechanisms: ClassVar[tuple[str, ...]] = SUMMED
    buckets: int
    grid: int = 64
    max_records: int = 1

    def __post_init__(self) -> None:
        integers_in(1, 2**20, buckets=self.buckets, grid=self.grid, max_records=self.max_records)

    @property
    def sensitivity(self) -> Sensitivity:
        """Of the sum, on the grid."""
        return Sensitivity.of((self.grid, self.grid), self.max_records)

    @property
    def largest(self) -> int:
        """Largest value that one record can add to a coordinate."""
        return self.grid


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectCountSpec:
    """On how many records a released classifier is right, and how many there are (federated evaluation).

    The classifier is public, so a record adds 1 for being there and 1 if the classifier is right on it: l1 = 2,
    l2 = sqrt(2). The number of records is private too, which is why it is counted with noise.

    Attributes:
        max_records: m.
    """

    kind: ClassVar[str] = "correct count"
    mechanisms: ClassVar[tuple[str, ...]] = SUMMED
    grid: ClassVar[int] = 1
    largest: ClassVar[int] = 1
    max_records: int = 1

    def __post_init__(self) -> None:
        integers_in(1, 2**20, max_records=self.max_records)

    @property
    def sensitivity(self) -> Sensitivity:
        """Of the sum, on the grid."""
        return Sensitivity.of((1, 1), self.max_records)


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthRangeSpec:
    """Shortest and longest length, in words, of a party's records, about (DPGA-TextSyn, section 3.2).

    The sparse vector technique in the party (`mechanisms.length_range`): AboveThreshold on "how many records are longer
    than x" for x = 0, 1, ... up to a public cap, and likewise from the other side. One record moves each of these
    counts by at most 1, so with threshold noise of scale b and query noise of scale 2b one end costs 2 / b (Dwork and
    Roth 2014, theorem 3.23), however many counts were looked at, and both ends 4 / b: hence `l1` = 4. Each party asks
    its own records, so what all parties answer costs as much as one party's answer.

    Attributes:
        cap: Longest length that is looked for, a public number.
        max_records: m.
    """

    kind: ClassVar[str] = "length range"
    mechanisms: ClassVar[tuple[str, ...]] = ("sparse vector",)
    grid: ClassVar[int] = 1
    cap: int
    max_records: int = 1

    def __post_init__(self) -> None:
        integers_in(1, 2**16, cap=self.cap)
        integers_in(1, 2**20, max_records=self.max_records)

    @property
    def sensitivity(self) -> Sensitivity:
        """`l1` over the scale is the epsilon of one answer."""
        return Sensitivity(l1=4 * self.max_records, l2_squared=16 * self.max_records**2, touched=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedChoiceSpec:
    """Each record's choice among candidates by noisy max (RPSG; METHODS: the pool variant), as positions, sorted.

    A record has a utility in [0, 1] for each candidate, and its choice is made by the exponential mechanism with
    exp(u / b), or by permute-and-flip (`mechanisms.noisy_max`). The number of choices is public. A party with fewer
    records fills up with uniform choices, which are choices under equal utilities: a record more takes the place of
    such a one. A party with more records lets that many of them choose, drawn uniformly: with a record more, the drawn
    ones are the same but for at most one that is replaced. Both ways one choice is made with other utilities, and
    positions are sorted, so that the order of records does not show. What one choice costs:

    - `nearest` = 0: utilities are (1 + cosine) / 2 for candidates of the record's label and 0 for others. Another
      record in the place of one moves each by at most 1, so that a choice costs 2 / b (`noisy_max`): `l1` = 2.
    - `nearest` = n: 1 for n candidates, the nearest of the record's label and, where it has fewer, of the others; 0 for
      the rest. By the exponential mechanism a candidate has probability 1 / Z or exp(-1/b) / Z, and
      Z = n + (K - n) exp(-1/b) is the same for every record, as each has exactly n (or all K < n) of utility 1. So in
      another record's place the probabilities of two outcomes differ by a factor of at most exp(1/b); and from the
      uniform 1/K by at most that too, since K exp(-1/b) <= Z <= K. Hence `l1` = 1: at one epsilon twice the exponent,
      on the whole of the interval. It is subset selection (Ye and Barg 2018) of one candidate. Permute-and-flip has no
      such constant Z.

    Which candidates are of utility 1 may depend on the label and all else of the record: the bound looks at utilities.
    A unit's records take part in one choice each and the pool is public, so that an answer is (l1 m / b, 0)-DP, and all
    that is made from it is so end to end. Candidates that are made from the record have no such proof
    (`text_queries.AbstractedSeedsSpec`).

    Attributes:
        choices: How many each party makes, a public number.
        nearest: n, or 0.
        max_records: m.
    """

    kind: ClassVar[str] = "seed choice"
    grid: ClassVar[int] = 1
    choices: int
    nearest: int = 0
    max_records: int = 1

    def __post_init__(self) -> None:
        integers_in(1, 2**16, choices=self.choices)
        integers_in(0, 2**20, nearest=self.nearest)
        integers_in(1, 2**20, max_records=self.max_records)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """By which a choice may be made."""
        return ("exponential",) if self.nearest else ("permute and flip", "exponential")

    @property
    def sensitivity(self) -> Sensitivity:
        """`l1` over the scale is the epsilon of one answer."""
        l1 = (1 if self.nearest else 2) * self.max_records
        return Sensitivity(l1=l1, l2_squared=l1**2, touched=1)


SummedSpec = (
    VotesSpec
    | LabelHistogramSpec
    | LengthHistogramSpec
    | VocabularySpec
    | SketchSpec
    | SelfSimilaritySpec
    | CorrectCountSpec
)
Spec = SummedSpec | LengthRangeSpec | SeedChoiceSpec | TextSpec

_KINDS: dict[str, type[Spec]] = {spec.kind: spec for spec in get_args(Spec)}
KINDS = tuple(_KINDS)
"""Names of all queries."""

PROVEN = tuple(kind for kind, spec in _KINDS.items() if not issubclass(spec, UNPROVEN))
"""Of those whose answers have a proof."""


def spec_to_dict(spec: Spec) -> dict[str, Any]:
    """Plain values, ready for JSON, with the name of the query."""
    return {"kind": spec.kind, **asdict(spec)}


def spec_from_dict(plain: Mapping[str, Any]) -> Spec:
    """Inverse of `spec_to_dict`.

    Raises:
        ConfigError: No query of that name has just these fields, or a value is out of range.
    """
    values = dict(plain)
    spec = _KINDS.get(values.pop("kind", ""))
    if spec is None or set(values) != {field.name for field in fields(spec)}:
        raise ConfigError("query", expected=f"one of {', '.join(KINDS)}, with its fields", got="another")
    return spec(**values)
