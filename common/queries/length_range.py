"""The range of lengths of a party's records, computed inside the party by the sparse vector technique."""

from dataclasses import dataclass
from typing import ClassVar

from common.privacy.sensitivity import Sensitivity
from common.queries.page import Query, Spec
from common.validate import integers_in

LARGEST_CAP = 2**16


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthRangeSpec(Spec):
    """Approximate shortest and longest length, in words, of a party's records (DPGA-TextSyn, section 3.2).

    The party runs the sparse vector technique (`mechanisms.length_range`): AboveThreshold on the number of records
    longer than x, for x = 0, 1, ... up to a public cap, and then on the number of records shorter than x, from the cap
    downward. One record moves each of these counts by at most 1, so with threshold noise of scale b and query noise of
    scale 2b one end costs 2 / b (Dwork and Roth 2014, theorem 3.23), for any number of counts compared, and both ends
    cost 4 / b: hence `l1` = 4. Each party uses only its own records, so the answers of all parties cost as much as one
    party's answer.

    Attributes:
        cap: Largest length in the range, a public number.
        max_records: m, maximum number of records per privacy unit.
    """

    kind: ClassVar[str] = "length range"
    mechanisms: ClassVar[tuple[str, ...]] = ("sparse vector",)
    grid: ClassVar[int] = 1
    cap: int
    max_records: int = 1

    def __post_init__(self) -> None:
        integers_in(1, LARGEST_CAP, cap=self.cap)
        integers_in(1, 2**20, max_records=self.max_records)

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity whose `l1`, divided by the scale, is the epsilon of one answer."""
        return Sensitivity(l1=4 * self.max_records, l2_squared=16 * self.max_records**2, touched=2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LengthRange(Query):
    """The query for a length range; it has no arrays."""

    spec: LengthRangeSpec

    @property
    def length(self) -> int:
        """Number of coordinates in an answer: shortest, longest."""
        return 2
