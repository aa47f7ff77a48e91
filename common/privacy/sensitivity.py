"""The sensitivity of a query: the largest change in its answer that one privacy unit can cause (`common/queries`)."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """Largest change of an answer by one unit, on the answer's integer grid.

    Attributes:
        l1: Largest l1 change. For mechanisms that run inside a party, this is the epsilon of one answer times its
            scale.
        l2_squared: Largest squared l2 change.
        touched: Number of coordinates that one unit can change.
        shifts: Worst change of each touched coordinate, sorted, if no unit can exceed it in any coordinate; otherwise
            empty, and only the norms are proved.
    """

    l1: int
    l2_squared: int
    touched: int
    shifts: tuple[int, ...] = ()

    @classmethod
    def of(cls, shifts: tuple[int, ...], units: int) -> "Sensitivity":
        """Return the sensitivity to `units` records, given the shifts by one record; for several, it has no shifts."""
        l1, l2_squared = sum(shifts), sum(shift * shift for shift in shifts)
        return cls(
            l1=l1 * units,
            l2_squared=l2_squared * units**2,
            touched=len(shifts) * units,
            shifts=shifts if units == 1 else (),
        )

    def of_group(self, units: int) -> "Sensitivity":
        """Return the sensitivity to several units at once, in the worst case that all change the answer alike."""
        if units == 1:
            return self
        return Sensitivity(l1=self.l1 * units, l2_squared=self.l2_squared * units**2, touched=self.touched * units)

    @property
    def l2(self) -> float:
        """Largest l2 change."""
        return math.sqrt(self.l2_squared)
