"""The order of sections in texts with several sections: which section follows which."""

from dataclasses import dataclass
from typing import ClassVar

from common.privacy.sensitivity import Sensitivity
from common.queries.label_sets import CountsOfLabels
from common.queries.page import Query


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionOrderSpec(CountsOfLabels):
    """Numbers of records that begin with each section, that end with it, and that have it right after another section.

    The plan's labels are headings, and a record is the sequence of its first k sections under them, k at most s, each
    heading once. It adds 1 for its beginning, 1 for each of k - 1 sections that follow another, and 1 for its end.
    These are k + 1 different coordinates, since no two of them have the same predecessor, and the predecessor of the
    first section is the beginning. So k = s is the worst case:

        l1 = l2^2 = s + 1.

    A plan with this query takes records section by section in all of its queries: a record counts under the headings of
    up to s sections, each time with the text of that section.

    The answer has C (C + 1) coordinates, which form a matrix, row by row. Its first C rows stand for the preceding
    section, and its last row for the beginning. Its first C columns stand for the following section, and its last
    column for the end. Its diagonal, to which no text adds, is left out.
    """

    kind: ClassVar[str] = "section order"
    by_section: ClassVar[bool] = True

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of the summed answer, in grid units."""
        return Sensitivity.of((self.grid,) * (self.labels_per_record + 1), self.max_records)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SectionOrder(Query):
    """The query for the order of sections. It has no arrays.

    Attributes:
        spec: The planned specification.
    """

    spec: SectionOrderSpec

    @property
    def length(self) -> int:
        """Number of coordinates in an answer."""
        return self.spec.labels * (self.spec.labels + 1)
