"""How far one privacy unit can move the answer to a query (`common/queries`)."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """How far one unit moves an answer, on its integer grid.

    Attributes:
        l1: Largest l1 change. For the mechanisms that run inside a party: the epsilon of one answer times its scale.
        l2_squared: Largest squared l2 change.
        touched: Coordinates that one unit can change.
        shifts: Worst change of each touched coordinate, if no change of a unit exceeds it in any of them, sorted; else
            empty, and only the norms are proved.
    """

    l1: int
    l2_squared: int
    touched: int
    shifts: tuple[int, ...] = ()

    @classmethod
    def of(cls, shifts: tuple[int, ...], units: int) -> "Sensitivity":
        """From the worst changes by one record, for a unit of so many; the norms of several say all that is proved."""
        l1, l2_squared = sum(shifts), sum(shift * shift for shift in shifts)
        return cls(
            l1=l1 * units,
            l2_squared=l2_squared * units**2,
            touched=len(shifts) * units,
            shifts=shifts if units == 1 else (),
        )

    @property
    def l2(self) -> float:
        """Largest l2 change."""
        return math.sqrt(self.l2_squared)
