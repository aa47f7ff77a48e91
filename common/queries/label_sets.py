"""Counts of labels in texts with several labels: sizes of label sets, single labels, and pairs of labels."""

from dataclasses import dataclass
from typing import ClassVar

from common.domain import MOST_LABELS
from common.privacy.mechanisms import SUMMED
from common.privacy.sensitivity import Sensitivity
from common.queries.page import Query, Spec
from common.validate import integers_in


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsOfLabels(Spec):
    """Base of the specifications of the two questions about several labels of a record (see `section_order.py`).

    Attributes:
        labels: C, number of labels of the plan.
        labels_per_record: s, maximum number of labels of a record that count, at most C.
        max_records: m, maximum number of records per privacy unit.
    """

    mechanisms: ClassVar[tuple[str, ...]] = SUMMED
    grid: ClassVar[int] = 16
    largest: ClassVar[int] = 16
    labels: int
    labels_per_record: int = 1
    max_records: int = 1

    def __post_init__(self) -> None:
        integers_in(1, 2**12, labels=self.labels)
        integers_in(1, 2**20, max_records=self.max_records)
        integers_in(1, min(MOST_LABELS, self.labels), labels_per_record=self.labels_per_record)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSetsSpec(CountsOfLabels):
    """Number of records with each number of labels, with each label, and with each pair of labels.

    A record with k of the plan's labels, of which at most s count, adds 1 to the coordinate of the size k, 1 to each
    coordinate of its k labels and 1 to each coordinate of its k (k - 1) / 2 pairs. These coordinates are all different,
    and k = s is the worst case:

        l1 = l2^2 = 1 + s + s (s - 1) / 2.

    The answer has s + C + C (C - 1) / 2 coordinates: sizes from 1, labels, and pairs in the order (0, 1), (0, 2), ...,
    (1, 2), ...
    """

    kind: ClassVar[str] = "label sets"

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of the summed answer, in grid units."""
        most = self.labels_per_record
        return Sensitivity.of((self.grid,) * (1 + most + most * (most - 1) // 2), self.max_records)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelSets(Query):
    """The query for label sets. It has no arrays.

    Attributes:
        spec: The planned specification.
    """

    spec: LabelSetsSpec

    @property
    def length(self) -> int:
        """Number of coordinates in an answer: sizes, labels, pairs."""
        labels = self.spec.labels
        return self.spec.labels_per_record + labels + labels * (labels - 1) // 2
