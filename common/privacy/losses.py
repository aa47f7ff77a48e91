"""Composed privacy loss distributions of releases: the tight method of accounting.

The loss of an outcome is the logarithm of its probability with a unit divided by its probability without the unit. The
losses of independent answers add up, so their distributions are convolved (Koskela et al. 2020). This is done on a grid
of losses (`common.privacy.loss_grid`), rounded toward more privacy loss by "connect the dots" (Doroshenko et al. 2022).
These distributions are convolved:

- Gaussian or Laplace noise on coordinates with known worst shifts: each coordinate on the integers. A larger shift
  dominates a smaller one, because both noises are log-concave, so the declared shifts dominate any change by a unit,
  and domination survives composition (Zhu, Dong and Wang 2022).
- Gaussian noise of which only the l2 norm is known (a user's m records may have any directions relative to each other,
  and it is not proved that parallel ones are the worst on a lattice), or of sigma above 1000: all such answers together
  count as one continuous Gaussian, of which they are post-processing (`common.privacy.gaussian`).
- Mechanisms known to be (l1 / b, 0)-DP, and Laplace noise without shifts or with shifts above 10^4: randomised
  response, which dominates them all (Kairouz, Oh and Viswanath 2015).
- The composed and amplified loss of all answers on one Poisson subsample. If P and Q dominate the composed loss, then
  (1-q)Q + qP and Q dominate the loss with a unit that takes part with probability q, and P and (1-q)P + qQ dominate it
  in the other direction (Zhu, Dong and Wang 2022, theorem 11). With d the delta of P and Q at an epsilon, the deltas of
  these pairs are

      q d(ln(1 + (e^epsilon - 1) / q))        and        t d(epsilon + ln(q / t)),  t = 1 - (1-q) e^epsilon.

Time and memory grow with sigma, with Laplace shifts and with the number of different distributions. Beyond a limit, all
Gaussian noise is accounted for by norm and all Laplace noise by epsilon. If this calculation exceeds the limit too, or
if the losses are too small or too large, nothing is computed and the result is infinite. This module and its imports
take half a second to load.
"""

import functools
import math
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt
from dp_accounting.pld.privacy_loss_mechanism import DiscreteGaussianPrivacyLoss, DiscreteLaplacePrivacyLoss
from scipy.special import log_ndtr

from common.privacy.draws import Draw
from common.privacy.gaussian import rounded_mu_squared
from common.privacy.loss_grid import TAIL, ComposedLosses, Floats, LossGrid
from common.privacy.norms import LARGEST_SPREAD

LARGEST_SIGMA = 1_000
"""Largest sigma, in grid units, not accounted for by norm alone; beyond it, doing so costs only a millionth more."""
LARGEST_SHIFT = 10_000
"""Largest shift, in grid units, for which the loss distribution of Laplace noise is convolved."""
_SMALLEST_SPREAD = 1e-9
_MOST_WORK = 40_000
_COMPOSE = 1_000
"""Approximate work, in lattice points, to compose one more distribution."""
_AMPLIFY = 4_000
"""Approximate work, in lattice points, to amplify one distribution."""
_MOST_EQUAL = 200_000
"""Maximum number of times that one distribution is composed with itself; grids grow with this number."""
_MOST_POINTS = 200_000
_WIDEST = 10.2
"""Number of standard deviations of a Gaussian beyond which the probability is below e^-50."""
_TINY = 1e-280


class _Piece(NamedTuple):
    """A distribution to convolve. `spread` is about the standard deviation of its loss; `work` is in lattice points."""

    kind: str
    scale: float
    shift: int
    spread: float
    work: float


class _Part(NamedTuple):
    """The answers on one subsample, to be composed `times` times.

    `rate` is the subsample's rate, and `pieces` counts the distributions of the answers' losses.
    """

    rate: float
    times: int
    pieces: Counter[_Piece]

    @property
    def size(self) -> int:
        """Number of distributions on one subsample."""
        return sum(self.pieces.values())

    @property
    def spread(self) -> float:
        """Spread of the loss if all units take part."""
        return math.sqrt(sum(count * piece.spread * piece.spread for piece, count in self.pieces.items()))

    @property
    def amplified(self) -> float:
        """Spread of the amplified loss: about q sqrt(e^(m^2) - 1), the chi-square distance, for rate q, spread m."""
        return min(self.spread, self.rate * math.sqrt(math.expm1(self.spread**2)))


def composed_epsilon(draws: tuple[tuple[Draw, int], ...], delta: float) -> float:
    """Return the epsilon of all draws, each given with its count; infinite if it is not computed.

    It is not computed beyond the module's limits, or if all noise counts as one Gaussian, for which `norm_epsilon` is
    as tight. Every scale must be above 0.
    """
    losses = None if _one_gaussian(_parts(draws)) else composed_losses(draws)
    return losses.epsilon(delta) if losses else math.inf


@functools.lru_cache(maxsize=16)
def composed_losses(draws: tuple[tuple[Draw, int], ...]) -> ComposedLosses | None:
    """Return the losses of all draws, each given with its count; None beyond the module's limits.

    Every scale must be above 0. The result is kept for the next caller: it may take two seconds and two megabytes.
    """
    parts = _parts(draws)
    if not _affordable(parts) or not all(_SMALLEST_SPREAD <= part.spread <= LARGEST_SPREAD for part in parts):
        return None
    spread = math.sqrt(sum(part.times * part.amplified**2 for part in parts))
    if spread > LARGEST_SPREAD:
        return None
    count = sum(part.size * part.times for part in parts)
    interval = max(_interval(spread, count), *(_widest(part) / _MOST_POINTS for part in parts))
    total = functools.reduce(ComposedLosses.composed, (_both_ways(part, interval) for part in parts))
    return total._replace(rounding=TAIL * (10 + count))


def _parts(draws: tuple[tuple[Draw, int], ...]) -> list[_Part]:
    parts = [_Part(draw.rate, times, _pieces(draw, coarse=False)) for draw, times in draws]
    if not _affordable(parts):
        parts = [_Part(draw.rate, times, _pieces(draw, coarse=True)) for draw, times in draws]
    return parts


def _one_gaussian(parts: list[_Part]) -> bool:
    return len(parts) == parts[0].times == 1 and {piece.kind for piece in parts[0].pieces} == {"normal"}


def _affordable(parts: list[_Part]) -> bool:
    work = sum(piece.work for part in parts for piece in part.pieces)
    work += _AMPLIFY * sum(part.rate < 1 for part in parts)
    return work <= _MOST_WORK and max(max(part.times, *part.pieces.values(), 0) for part in parts) <= _MOST_EQUAL


def _pieces(draw: Draw, *, coarse: bool) -> Counter[_Piece]:
    pieces: Counter[_Piece] = Counter()
    mu_squared = 0.0
    for answer, times in draw.answers:
        scale = answer.scale
        by_shift = bool(answer.shifts) and not coarse
        if answer.mechanism == "gaussian" and not (by_shift and scale <= LARGEST_SIGMA):
            mu_squared += times * rounded_mu_squared(answer.l2_squared, scale)
        elif answer.mechanism == "pure" or (
            answer.mechanism == "laplace" and not (by_shift and max(answer.shifts) <= LARGEST_SHIFT)
        ):
            pieces[_Piece("pure", scale / answer.l1, 1, answer.l1 / scale, _COMPOSE)] += times
        else:
            for shift, count in sorted(Counter(answer.shifts).items()):
                work = _COMPOSE + (scale if answer.mechanism == "gaussian" else shift)
                pieces[_Piece(answer.mechanism, scale, shift, shift / scale, work)] += count * times
    if mu_squared:
        pieces[_Piece("normal", 1.0, 1, math.sqrt(mu_squared), _COMPOSE)] += 1
    return pieces


def _interval(spread: float, count: int) -> float:
    """Return a grid step, in proportion to the losses, so that precision and time barely depend on their size.

    Each loss is widened by about a grid step, so that the step must be small if there are many small losses.
    """
    step = 1e-4 * max(min(1.0, 5 * spread), spread)
    return min(step, spread * max(math.sqrt(1e-3 / count), 5e-5))


def _widest(part: _Part) -> float:
    """Return the approximate range of the amplified losses; heavy tails make the range much wider than the spread."""
    if part.rate == 1:
        return 0.0
    return math.log1p(part.rate * math.expm1(part.spread**2 / 2 + 9 * part.spread)) - math.log1p(-part.rate)


def _both_ways(part: _Part, interval: float) -> ComposedLosses:
    if part.rate == 1:
        loss = _composed(part.pieces, interval)
        return ComposedLosses(loss, loss)
    finer = part.spread * max(min(1e-3, math.sqrt(1e-4 / part.size)), 2e-4)
    with_unit, without_unit = _amplified(_composed(part.pieces, finer), part.rate, interval)
    return ComposedLosses(with_unit.repeated(part.times), without_unit.repeated(part.times))


def _composed(pieces: Counter[_Piece], interval: float) -> LossGrid:
    distributions = (_MAKERS[piece.kind](piece, interval).repeated(count) for piece, count in sorted(pieces.items()))
    return functools.reduce(LossGrid.composed, distributions)


def _gaussian(piece: _Piece, interval: float) -> LossGrid:
    noise = DiscreteGaussianPrivacyLoss(piece.scale, piece.shift)
    bounds = noise.connect_dots_bounds()
    first, last = cast("int", bounds.lower_x), cast("int", bounds.upper_x)
    points = _around(piece.shift * (-0.5 * piece.shift - np.arange(first, last + 1)) / piece.scale**2, interval)
    at = points * interval
    # A loss of at least `at` is that of the outcomes up to here.
    outcomes = np.floor(np.clip(-0.5 * piece.shift - at * piece.scale**2 / piece.shift, first - 1, last))
    deltas = np.clip(noise.mu_upper_cdf(outcomes) - np.exp(at + noise.mu_lower_log_cdf(outcomes)), 0, 1)
    return LossGrid.connected(interval, points, deltas)


def _laplace(piece: _Piece, interval: float) -> LossGrid:
    noise = DiscreteLaplacePrivacyLoss(1 / piece.scale, sensitivity=piece.shift)
    points = _around((2 * np.arange(piece.shift + 1) - piece.shift) / piece.scale, interval)
    return LossGrid.connected(interval, points, np.asarray(noise.get_delta_for_epsilon(points * interval)))


def _normal(piece: _Piece, interval: float) -> LossGrid:
    mu = piece.spread
    points = np.arange(
        math.floor((mu * mu / 2 - _WIDEST * mu) / interval), math.ceil((mu * mu / 2 + _WIDEST * mu) / interval) + 1
    )
    at = points * interval
    deltas = np.exp(log_ndtr(mu / 2 - at / mu)) - np.exp(at + log_ndtr(-mu / 2 - at / mu))
    return LossGrid.connected(interval, points, np.clip(deltas, 0, 1))


def _pure(piece: _Piece, interval: float) -> LossGrid:
    """Return the losses of randomised response, which is truthful with probability e^epsilon / (1 + e^epsilon)."""
    epsilon = piece.spread
    points = _around(np.array([-epsilon, epsilon]), interval)
    at = points * interval
    truth = 1 / (1 + math.exp(-epsilon))
    deltas = np.maximum(np.maximum(truth - np.exp(at - epsilon) * truth, -np.expm1(at)), 0)
    return LossGrid.connected(interval, points, deltas)


def _around(losses: Floats, interval: float) -> npt.NDArray[np.int64]:
    """Return the grid points on both sides of each of these losses, ascending."""
    steps = np.concatenate([np.floor(losses / interval), np.ceil(losses / interval)]).astype(np.int64)
    first = steps.min()
    # np.unique takes ten times as long.
    points: npt.NDArray[np.int64] = np.flatnonzero(np.bincount(steps - first)) + first
    return points


_MAKERS: dict[str, Callable[[_Piece, float], LossGrid]] = {
    "gaussian": _gaussian,
    "laplace": _laplace,
    "normal": _normal,
    "pure": _pure,
}


def _amplified(base: LossGrid, rate: float, interval: float) -> tuple[LossGrid, LossGrid]:
    """Return the losses after subsampling, in both directions, from the one loss `base` of its answers."""
    last = math.ceil(base.epsilon(base.infinite + TAIL) / base.step)
    grid = np.arange(-last, last + 1) * base.step
    # Between grid points delta is linear in e^epsilon, and it is convex, so that this is also a bound below the grid.
    dots = np.append(1.0, base.deltas(grid))
    powers = np.append(0.0, np.exp(grid))

    def delta(power: Floats) -> Floats:
        return np.interp(power, powers, dots)  # type: ignore[no-any-return]

    def delta_with(at: Floats) -> Floats:
        gain = np.expm1(at)
        return np.where(gain > -rate, rate * delta(1 + gain / rate), -gain)

    def delta_without(at: Floats) -> Floats:
        factor = np.maximum(rate - (1 - rate) * np.expm1(at), _TINY)
        return factor * delta(rate * np.exp(at) / factor)

    def loss(deltas: Callable[[Floats], Floats], low: int, high: int) -> LossGrid:
        points = np.arange(low, high + 1)
        return LossGrid.connected(interval, points, np.clip(deltas(points * interval), 0, 1))

    top = math.ceil(math.log1p(rate * math.expm1(last * base.step)) / interval)
    bottom = math.ceil(-math.log1p(-rate) / interval)
    return loss(delta_with, -bottom, top), loss(delta_without, -top, bottom)
