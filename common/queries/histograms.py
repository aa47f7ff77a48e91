"""Histograms of labels, of lengths and of the terms of a public vocabulary."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from common.privacy.mechanisms import SUMMED
from common.privacy.sensitivity import Sensitivity
from common.queries.arrays import check_shape, wrong
from common.queries.page import Query, Spec
from common.queries.terms import check_terms
from common.validate import integers_in


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelHistogramSpec(Spec):
    """Number of records with each label of the plan.

    A record has one label and adds 1 to the count of this label; records with labels outside the plan add nothing.
    l1 = l2 = 1.

    Attributes:
        labels: C, number of labels of the plan.
        max_records: m, maximum number of records per privacy unit.
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
        """Sensitivity of the summed answer, in grid units."""
        return Sensitivity.of((1,), self.max_records)


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthHistogramSpec(Spec):
    """Histogram of the records' lengths in words: the number of records in each bin (DPGA-TextSyn, section 3.2).

    The bins are public and disjoint and cover all lengths: the first and the last bin are open-ended. A record adds 1
    to one bin, so one record has the sensitivities l1 = l2 = 1.

    Attributes:
        bins: Number of bins.
        max_records: m, maximum number of records per privacy unit.
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
        """Sensitivity of the summed answer, in grid units."""
        return Sensitivity.of((1,), self.max_records)


@dataclass(frozen=True, slots=True, kw_only=True)
class VocabularySpec(Spec):
    """Number of records in which each term of a public vocabulary is among the first k (DP-KPS, section 2).

    The vocabulary is public, and each of its terms has a noised coordinate, even if its count is zero. The first k
    distinct terms of a text depend only on that text. So a record adds 1 to at most k coordinates: l1 = k, l2 =
    sqrt(k).

    Attributes:
        first: k, number of a record's first terms that count.
        max_records: m, maximum number of records per privacy unit.
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
        """Sensitivity of the summed answer, in grid units."""
        return Sensitivity.of((1,) * self.first, self.max_records)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelHistogram(Query):
    """The query for a label histogram. It has no arrays: the labels come from the plan."""

    spec: LabelHistogramSpec

    @property
    def length(self) -> int:
        """Number of coordinates in an answer: one per label."""
        return self.spec.labels


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LengthHistogram(Query):
    """The query for a length histogram, with the edges of its bins.

    Attributes:
        spec: The planned specification.
        edges: (bins - 1,) int32, ascending: a text of w words is in the bin after the last edge that is at most w.
    """

    dtypes: ClassVar[Mapping[str, str]] = {"edges": "<i4"}
    spec: LengthHistogramSpec
    edges: NDArray[np.int32]

    def __post_init__(self) -> None:
        check_shape(self.spec.kind, "edges", self.edges, np.int32, (self.spec.bins - 1,))
        if (np.diff(self.edges.astype(np.int64)) <= 0).any():
            raise wrong(self.spec.kind, "edges", "ascending numbers", "others")

    @property
    def length(self) -> int:
        """Number of coordinates in an answer: one per bin."""
        return self.spec.bins


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Vocabulary(Query):
    """The query for a vocabulary histogram, with its public vocabulary.

    Attributes:
        spec: The planned specification.
        terms: (bytes,) uint8: the terms in UTF-8, each followed by a line feed; see
            `common.queries.terms.encode_terms`.
    """

    dtypes: ClassVar[Mapping[str, str]] = {"terms": "|u1"}
    spec: VocabularySpec
    terms: NDArray[np.uint8]

    def __post_init__(self) -> None:
        check_terms(self.spec.kind, self.terms)

    @property
    def length(self) -> int:
        """Number of coordinates in an answer: one per term."""
        return int(np.count_nonzero(self.terms == ord("\n")))
