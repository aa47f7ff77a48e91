"""Choices of seeds from a public pool, made inside the party by noisy max."""

from dataclasses import dataclass
from typing import ClassVar

from common.privacy.sensitivity import Sensitivity
from common.queries.arrays import LabelledCandidates
from common.queries.page import Spec
from common.validate import integers_in


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedChoiceSpec(Spec):
    """Each record's choice among candidates by noisy max (RPSG's variant with a public pool), as sorted indices.

    A record has a utility in [0, 1] for each candidate, and its choice is made by the exponential mechanism with
    exp(u / b), or by permute-and-flip (`mechanisms.noisy_max`). The number of choices is public. A party with fewer
    records makes the remaining choices uniformly, that is, under equal utilities: an additional record replaces one of
    these choices. A party with more records draws that number of them uniformly: with an additional record, the sample
    is the same except for at most one replaced record. In both cases one choice is made with other utilities. The
    indices are sorted, so that the order of records is not revealed. The cost of one choice is as follows:

    - `nearest` = 0: utilities are (1 + cosine) / 2 for candidates of the record's label and 0 for others. Replacing a
      record moves each utility by at most 1, so that a choice costs 2 / b (`noisy_max`): `l1` = 2.
    - `nearest` = n: utilities are 1 for n candidates, which are the nearest candidates of the record's label and, if
      this label has fewer than n, also the nearest of other labels; utilities are 0 for the rest. By the exponential
      mechanism a candidate has probability 1 / Z or exp(-1/b) / Z, and Z = n + (K - n) exp(-1/b) is the same for every
      record, as each record gives utility 1 to exactly n candidates (or to all K if K < n). So replacing a record
      changes the probability of an outcome by a factor of at most exp(1/b); and this probability differs from the
      uniform 1/K by at most that factor too, since K exp(-1/b) <= Z <= K. Hence `l1` = 1: at the same epsilon,
      exponents are twice as large, and utilities use the whole interval. It is subset selection (Ye and Barg 2018) of
      one candidate. Permute-and-flip has no such constant Z.

    The set of candidates with utility 1 may depend on the label and everything else in the record: the bound concerns
    utilities alone. The records of a unit take part in one choice each, and the pool is public, so an answer and
    everything computed from it are (l1 m / b, 0)-DP. Candidates that are written from the record have no such proof
    (`texts.AbstractedSeedsSpec`).

    Attributes:
        choices: Number of choices of each party, public.
        nearest: n, number of candidates that count as nearest to a record; or 0.
        max_records: m, maximum number of records per privacy unit.
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
        """Names of the mechanisms that may make a choice."""
        return ("exponential",) if self.nearest else ("permute and flip", "exponential")

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity whose `l1`, divided by the scale, is the epsilon of one answer."""
        l1 = (1 if self.nearest else 2) * self.max_records
        return Sensitivity(l1=l1, l2_squared=l1**2, touched=1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeedChoice(LabelledCandidates):
    """The query for seed choices, with the public pool to choose from."""

    spec: SeedChoiceSpec

    @property
    def length(self) -> int:
        """Number of coordinates in an answer: one per choice."""
        return self.spec.choices
