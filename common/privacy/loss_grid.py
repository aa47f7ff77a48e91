"""Distributions of the privacy loss on a grid, and their composition.

These are the algorithms of dp_accounting's dense distributions: connect the dots (Doroshenko et al. 2022, algorithm 1),
composition by Fourier transforms with tails cut off by a Chernoff bound (Koskela et al. 2020), and the hockey-stick
divergence in both directions. The library loops over each grid in Python; the numpy code here takes about a third of
the time. The tests compare the results of both implementations.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import fft, signal

from common.errors import InternalError

Floats = npt.NDArray[np.floating[Any]]

TAIL = 1e-15
"""Probability mass that one composition may cut off. It is never dropped: it counts as a larger or an infinite loss."""
_ROUNDING = 1e-6
"""Largest error of the sum of probabilities after two hundred thousand compositions."""
_UP = 1 + 1e-12
_ORDERS = np.concatenate([np.arange(-20, 0), np.arange(1, 21)])
"""Orders of the Chernoff bounds, in units of one over the size of the grid."""


@dataclass(frozen=True, slots=True)
class LossGrid:
    """The losses (first + i) * step for i = 0, 1, ... with a probability each, and an infinite loss.

    Args:
        step: Distance between neighbouring losses.
        first: The smallest loss, in steps.
        probabilities: Shape (size,). Fourier transforms compute them, so rounding errors may make them slightly
            negative.
        infinite: Probability of the infinite loss.
    """

    step: float
    first: int
    probabilities: Floats
    infinite: float

    @property
    def losses(self) -> Floats:
        """The finite losses, ascending: (size,)."""
        return (self.first + np.arange(self.probabilities.size)) * self.step

    @staticmethod
    def connected(step: float, points: npt.NDArray[np.int64], deltas: Floats) -> "LossGrid":
        """Return the least distribution on these losses whose deltas are at least the given deltas, at every epsilon.

        Args:
            step: Distance between neighbouring losses.
            points: The losses in steps, ascending. Shape (n,).
            deltas: The mechanism's delta at each of these losses. Shape (n,). A delta that rounding made smaller than a
                later delta is raised to the later one.
        """
        deltas = np.maximum.accumulate(deltas[::-1])[::-1]
        gaps, falls = np.diff(points) * step, -np.diff(deltas)
        probabilities = np.append(1 - deltas[0], falls / -np.expm1(-gaps)) - np.append(falls / np.expm1(gaps), 0.0)
        places = np.zeros(points[-1] - points[0] + 1)
        places[points - points[0]] = np.maximum(0, probabilities)
        return LossGrid(step, int(points[0]), places, float(deltas[-1]))

    def composed(self, other: "LossGrid") -> "LossGrid":
        """Return the distribution of the sum of two independent losses, whose distributions have the same step."""
        if self.step != other.step:
            raise InternalError("grids of losses", expected=f"the same step, {self.step}", got=other.step)
        sums = signal.fftconvolve(self.probabilities, other.probabilities)
        low, high = _within(sums), sums.size - _within(sums[::-1])
        kept = sums[low:high].copy()
        kept[0] += np.sum(sums[:low])
        infinite = self.infinite + other.infinite - self.infinite * other.infinite + float(np.sum(sums[high:]))
        return LossGrid(self.step, self.first + other.first + low, kept, infinite)

    def repeated(self, times: int) -> "LossGrid":
        """Return the distribution of the sum of `times` independent losses with this distribution."""
        if times == 1:
            return self
        low, high = self._bounds(times)
        size = high - low + 1
        length = fft.next_fast_len(max(size, self.probabilities.size), real=True)
        sums = fft.irfft(fft.rfft(self.probabilities, length) ** times, length)
        infinite = TAIL - math.expm1(times * math.log1p(-self.infinite))
        return LossGrid(self.step, self.first * times + low, np.roll(sums, -low)[:size], infinite)

    def _bounds(self, times: int) -> tuple[int, int]:
        """Return Chernoff bounds on the index of a sum of `times` losses, which hold except with probability `TAIL`."""
        size = self.probabilities.size
        low, high, places = 0, (size - 1) * times, np.arange(size) / size
        for order in _ORDERS:
            moment = math.log(np.exp(order * places) @ self.probabilities)
            bound = (times * moment + math.log(2 / TAIL)) / order * size
            low, high = (max(low, math.floor(bound)), high) if order < 0 else (low, min(high, math.ceil(bound)))
        return low, high

    def deltas(self, epsilons: Floats) -> Floats:
        """Return the hockey-stick divergence at each of these epsilons, (n,)."""
        losses, descending = self.losses, self.probabilities[::-1]
        upper = np.cumsum(np.append(self.infinite, descending))
        lower = np.cumsum(np.append(0.0, descending * np.exp(-losses[::-1])))
        above = losses.size - np.searchsorted(losses, epsilons, side="right")
        deltas: Floats = upper[above] - np.exp(epsilons) * lower[above]
        return deltas

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon, 0 or more, with at most this delta; infinite if there is no such epsilon.

        Raises:
            InternalError: Losses are missing: their probabilities sum to less than 1.
        """
        total = float(np.sum(self.probabilities)) + self.infinite
        if not total > 1 - _ROUNDING:  # nor if it is no number
            raise InternalError("probabilities of all losses", expected="1 in all, or more", got=total)
        if self.infinite > delta:
            return math.inf
        positive = max(0, 1 - self.first)  # at epsilon 0 or more, no other loss counts
        losses, descending = self.losses[positive:][::-1], self.probabilities[positive:][::-1]
        upper = np.cumsum(np.append(self.infinite, descending)) - delta
        lower = np.cumsum(np.append(0.0, descending * np.exp(-losses)))
        # Between two losses the delta of epsilon is that of the sums over all losses above.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            epsilons = np.where(upper > 0, np.log(upper / lower), -math.inf)
        above = np.append(epsilons[:-1] >= losses, True)
        return max(0.0, float(epsilons[np.argmax(above)]))


class ComposedLosses(NamedTuple):
    """Losses in both directions (with a unit relative to without it, and the reverse); one object if they are equal.

    `rounding` bounds the rounding errors of a delta, with 1e-15 for each distribution that was composed; compared with
    calculations in extended precision, compositions were off by a twentieth of that.
    """

    with_unit: LossGrid
    without_unit: LossGrid
    rounding: float = 0.0

    @property
    def alike(self) -> bool:
        """Whether the losses in both directions have the same distribution."""
        return self.with_unit is self.without_unit

    def composed(self, other: "ComposedLosses") -> "ComposedLosses":
        """Return the sums of these losses and of other, independent ones, still without `rounding`."""
        with_unit = self.with_unit.composed(other.with_unit)
        alike = self.alike and other.alike
        return ComposedLosses(with_unit, with_unit if alike else self.without_unit.composed(other.without_unit))

    def epsilon(self, delta: float) -> float:
        """Return the epsilon of this delta, less `rounding`; infinite if nothing of delta is left."""
        delta -= self.rounding
        if delta <= 0:
            return math.inf
        with_unit = self.with_unit.epsilon(delta)
        return _UP * (with_unit if self.alike else max(with_unit, self.without_unit.epsilon(delta)))

    def deltas(self, epsilons: Floats) -> Floats:
        """Return the larger delta of both directions, with `rounding`, at each of these epsilons, (n,)."""
        with_unit = self.with_unit.deltas(epsilons)
        larger = with_unit if self.alike else np.maximum(with_unit, self.without_unit.deltas(epsilons))
        return np.maximum(larger, 0.0) + self.rounding


def _within(probabilities: Floats) -> int:
    """Return the number of leading probabilities whose sum is at most half of `TAIL`."""
    return int(np.argmax(np.cumsum(probabilities) > TAIL / 2))
