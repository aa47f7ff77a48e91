"""The mean cosine of pairs of records."""

from dataclasses import dataclass
from typing import ClassVar

from common.privacy.mechanisms import SUMMED
from common.privacy.sensitivity import Sensitivity
from common.queries.page import Query, Spec
from common.validate import integers_in


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfSimilaritySpec(Spec):
    """Mean cosine of pairs of records (DPGA-TextSyn's starting tau): the sum of cosines, and the number of pairs.

    A keyed digest of a record's text and label puts it into one of `buckets`; equal records are numbered, so that
    removing any of them has the effect of removing the last. Only a bucket with exactly two records is a pair. The
    bucket of a record does not depend on other records, so one additional record changes one bucket: if it grows from
    one to two records, a pair is added; if it grows from two to three, the pair is lost; otherwise nothing changes. So
    the sum changes by one cosine, at most B on the grid rounded toward zero, and the number of pairs, in units of B
    too, by B: l1 = 2 B, l2^2 = 2 B^2. If there are as many buckets as records, 37% of the records are in pairs, which
    is the maximum.

    Attributes:
        buckets: Number of buckets, which is public; about the number of records of one party.
        grid: B, grid units in 1.
        max_records: m, maximum number of records per privacy unit.
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
        """Sensitivity of the summed answer, in grid units."""
        return Sensitivity.of((self.grid, self.grid), self.max_records)

    @property
    def largest(self) -> int:
        """Largest value that one record can add to a coordinate."""
        return self.grid


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SelfSimilarity(Query):
    """The query for self-similarity; it has no arrays."""

    spec: SelfSimilaritySpec

    @property
    def length(self) -> int:
        """Number of coordinates in an answer: the sum of cosines, the number of pairs."""
        return 2
