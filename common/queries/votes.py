"""Nearest and furthest votes: specification, proof of the sensitivity, and query."""

from dataclasses import dataclass
from typing import ClassVar

from common.domain import MOST_LABELS
from common.privacy.mechanisms import SUMMED
from common.privacy.sensitivity import Sensitivity
from common.queries.arrays import LabelledCandidates
from common.queries.page import Spec
from common.validate import flags, integers_in

MOST_VOTES = 20
"""Largest Q, with which 2^(Q-1) times any plausible number of records is far below 2^63."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VotesSpec(Spec):
    r"""Nearest and furthest votes of WASP (section 3.3), on an integer grid with `grid` = f 2^(Q-1) units per vote.

    A record gives its q-th nearest candidate of its own label 2^-(q-1) votes, q = 1..Q, and, in a second half of the
    vector, its q-th furthest candidate the same number. On the grid these are the integers f 2^(Q-q).

    A record's ranking depends on that record and on public candidates alone, so the change is this record's own
    contribution. If the record's label has n candidates, the record ranks r = min(Q, n) of them, all different in each
    direction. So, in units of f, the nearest half changes in exactly r coordinates, by 2^(Q-1), 2^(Q-2), ..., 2^(Q-r),
    and so does the furthest half. The halves are separate coordinates even if a candidate is among the nearest and the
    furthest (certain for n < 2Q); in one common histogram both votes would be added to one coordinate, and n = 2 would
    yield an l2 change of 2.121 votes. r < Q drops the smallest changes and adds no other, so r = Q is the worst case:

        l1 = k f (2^Q - 1),   l2^2 = k f^2 (4^Q - 1) / 3   on the grid, with k = 2 halves (1 without the furthest),

    in votes l2^2 = (k 4/3)(1 - 4^-Q). Both bounds are reached as soon as n >= Q.

    A record with several labels votes in this way under each of up to s of them. A candidate of the query has one
    label, and a text with several labels is a candidate under each of them: labels share no coordinate, so both bounds
    grow s times, and l2 itself sqrt(s) times.

    Attributes:
        top: Q >= 1, number of candidates that one record votes for in each direction.
        furthest: Whether the furthest candidates are voted on too.
        fine: f >= 1, grid units in the smallest vote: with few votes and many parties, shares of noise would otherwise
            be too small on the integer grid.
        max_records: m, maximum number of records per privacy unit; 1 means sample level.
        labels_per_record: s, maximum number of its labels under which a record votes.
    """

    kind: ClassVar[str] = "votes"
    mechanisms: ClassVar[tuple[str, ...]] = SUMMED
    top: int
    furthest: bool = True
    fine: int = 1
    max_records: int = 1
    labels_per_record: int = 1

    def __post_init__(self) -> None:
        integers_in(1, MOST_VOTES, top=self.top)
        integers_in(1, MOST_LABELS, labels_per_record=self.labels_per_record)
        integers_in(1, 2**20, max_records=self.max_records)
        integers_in(1, 2**10, fine=self.fine)
        flags(furthest=self.furthest)

    @property
    def grid(self) -> int:
        """Number of grid units in one vote: f 2^(Q-1)."""
        return self.fine << (self.top - 1)

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of the summed answer, in grid units."""
        half = tuple(self.fine << q for q in range(self.top))
        halves = 2 * self.labels_per_record if self.furthest else self.labels_per_record
        return Sensitivity.of(tuple(sorted(half * halves)), self.max_records)

    @property
    def largest(self) -> int:
        """Largest value that one record can add to a coordinate."""
        return self.grid

    @property
    def paper_l1(self) -> float:
        """The bound, in votes, that WASP's paper uses as the l2 sensitivity: 2 for each direction, 1 for Top-1."""
        under = self.max_records * self.labels_per_record
        return (1.0 if self.top == 1 else 2.0) * (2 if self.furthest else 1) * under


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Votes(LabelledCandidates):
    """The query for votes, with the candidates to vote on."""

    spec: VotesSpec

    @property
    def length(self) -> int:
        """Number of coordinates in an answer: nearest first, then furthest."""
        return len(self.labels) * (2 if self.spec.furthest else 1)
