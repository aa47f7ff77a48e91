"""What released answers cost: (epsilon, delta) of integer queries, composed, and the noise for a given cost.

Every result is rounded toward more privacy lost. Two ways to account, both upper bounds:

- `epsilon`: the composed privacy loss distribution (`common.privacy.losses`), or the following where that is less;
- `epsilon_by_norm`: fast, from norms (`common.privacy.norms`).

Poisson subsampling (each unit takes part with probability `rate`, independently): answers on one subsample are composed
first and amplified then; subsamples are amplified each and composed then. An answer may depend on all before it, also
where answers on different subsamples alternate (Vadhan and Zhang 2023, concurrent composition).

The noise that is really drawn differs from the ideal one in three ways, and both results include them:

- a sum of U Gaussian shares of scale s against one discrete Gaussian: each probability off by at most a factor
  exp(+-tau), `gaussian.sum_gap`; a sum of Polya shares is exactly a discrete Laplace;
- a discrete Gaussian against a continuous one where only its norm counts: another factor, exp(+-rho);
- each share off by `samplers.gaussian_tv` or `samplers.laplace_tv` in total variation, TV.

With c touched coordinates in all, coordinates that no unit can touch being identical either way,

    delta(epsilon) <= exp(g) delta_ideal(epsilon - 2 g) + (1 + e^epsilon) c U TV,    g = c (tau + rho).

That holds under subsampling too: given who else takes part, an answer is a mixture of that with the unit and that
without, and a mixture is off by no more, in factors and in total variation, than its worst part.

TV is of the order of 1e-32, so that above epsilon = 50 or so nothing is proved any more and the result is infinite.
"""

import functools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from scipy.optimize import brentq

from common.errors import ConfigError, PlanError
from common.privacy.gaussian import (
    ROUNDING_GAP,
    ROUNDING_VARIANCE,
    gaussian_mu,
    sum_gap,
)
from common.privacy.losses import Draw, PricedAnswer, composed_epsilon
from common.privacy.norms import LARGEST_EXPONENT, before_amplification, norm_epsilon, quotient_up
from common.privacy.samplers import gaussian_tv, laplace_tv
from common.privacy.sensitivity import Sensitivity
from common.validate import at_least, in_range, one_of, positive, probability

_UP = 1 + 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Answers of one kind that have been, or may be, released.

    Attributes:
        mechanism: "gaussian" or "laplace": discrete noise on an integer vector; "pure": a mechanism inside a party
            that is (l1 / scale, 0)-DP.
        sensitivity: How far one unit moves one answer.
        scale: Of the whole noise, in grid units: sigma of a discrete Gaussian, b of a discrete Laplace with
            probabilities proportional to exp(-|k| / b), or l1 / epsilon. 0 has no noise, or no proof: infinite epsilon.
        times: How many such answers.
        shares: Independent shares that make up the noise: of scale sigma / sqrt(shares), or Polya shares of b.
        rate: Probability with which each unit takes part, independently of the others (Poisson subsampling); 1: all do.
        draw: Names the subsample: releases of one name were answered by the same one. Empty if rate is 1.
        draws: Independent subsamples of that rate under the name, `times` answers on each: the steps of DP-SGD.
    """

    mechanism: str
    sensitivity: Sensitivity
    scale: float
    times: int = 1
    shares: int = 1
    rate: float = 1.0
    draw: str = ""
    draws: int = 1

    def __post_init__(self) -> None:
        one_of("mechanism", self.mechanism, among=("gaussian", "laplace", "pure"))
        at_least(0, scale=self.scale)
        at_least(1, times=self.times, shares=self.shares, draws=self.draws)
        in_range(0, 1, rate=self.rate)
        if self.rate == 0 or (self.rate < 1) != bool(self.draw):
            raise ConfigError("rate", expected="above 0, and below 1 with the name of a draw", got=self.rate)
        if self.draws > 1 and not self.draw:
            raise ConfigError("draws", expected="1, of all units", got=self.draws)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return json.loads(json.dumps(asdict(self)))  # type: ignore[no-any-return]

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> "Release":
        """Inverse of `to_dict`."""
        sensitivity = {**plain["sensitivity"], "shifts": tuple(plain["sensitivity"]["shifts"])}
        return Release(**{**plain, "sensitivity": Sensitivity(**sensitivity)})


def epsilon(releases: Iterable[Release], delta: float) -> float:
    """Epsilon of all releases together, the least that can be shown; it depends on how many there are of each alone.

    0 for no release; infinite if one has no noise. Takes up to about two seconds.

    Raises:
        ConfigError: If delta is no probability, or answers on one subsample have different rates.
    """
    return _at_delta(_merged(releases), delta, by_norm=False)


def epsilon_by_norm(releases: Iterable[Release], delta: float) -> float:
    """As `epsilon`, but from norms and epsilons alone: milliseconds, never less, hardly more for Gaussian noise."""
    return _at_delta(_merged(releases), delta, by_norm=True)


def calibrate(
    *,
    mechanism: str,
    sensitivity: Sensitivity,
    times: int,
    shares: int,
    rate: float,
    redraw: bool,
    epsilon: float,
    delta: float,
) -> float:
    """The smallest scale, in grid units, with which `times` answers are (epsilon, delta)-DP.

    Gaussian: the continuous Gaussian's sigma, and if that is too small about a millionth more; subsampled the smallest
    to one in 10^5. Laplace and
    pure: times l1 / epsilon, which needs no delta; subsampled with q, the inverse of epsilon = ln(1 + q (e^x - 1)).

    Args:
        mechanism: As in `Release`.
        sensitivity: Of one answer.
        times: How many answers.
        shares: As in `Release`.
        rate: As in `Release`.
        redraw: Whether each answer has a subsample of its own; otherwise one serves all.
        epsilon: For all answers together; infinite: 0 is returned.
        delta: For all answers together.

    Raises:
        ConfigError: If a value is out of range.
        PlanError: If no scale can be shown to reach them.
    """
    named = Release(
        mechanism=mechanism, sensitivity=sensitivity, scale=1.0, times=times, shares=shares, rate=rate,
        draw="" if rate == 1 else "draw",
    )  # fmt: skip
    sigma = continuous_sigma(sensitivity, times, epsilon, delta)
    if sigma == 0:
        return sigma
    apart = redraw and rate < 1

    def cost(scale: float) -> float:
        answer = _answer(named)._replace(scale=scale)
        draws = (Draw(rate, ((answer, 1 if apart else times),)), times if apart else 1)
        return _at_delta((draws,), delta, by_norm=mechanism != "gaussian")

    if mechanism != "gaussian":
        within = before_amplification(epsilon / times if apart else epsilon, rate)
        return _nudged(quotient_up(sensitivity.l1 * (1 if apart else times), within), cost, epsilon, delta)
    if not sensitivity.shifts:
        sigma = math.hypot(sigma, math.sqrt(ROUNDING_VARIANCE))
    return _nudged(sigma if rate == 1 else _searched(sigma, rate, cost, epsilon), cost, epsilon, delta)


def continuous_sigma(sensitivity: Sensitivity, times: int, epsilon: float, delta: float) -> float:
    """Sigma of a continuous Gaussian for `times` answers, in grid units; 0 for infinite epsilon."""
    probability(delta=delta)
    if epsilon == math.inf:
        return 0.0
    positive(epsilon=epsilon)
    return math.sqrt(times) * sensitivity.l2 / gaussian_mu(epsilon, delta)


def paper_sigma(l1: float, times: int, epsilon: float, delta: float) -> float:
    """Sigma, in units of l1, of the classical Gaussian mechanism as WASP and Aug-PE use it, for comparison alone.

    It takes a bound on the l1 change for the l2 one; and the formula is proved for epsilon < 1 only.
    """
    return l1 * math.sqrt(times) * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def _nudged(scale: float, cost: Callable[[float], float], epsilon: float, delta: float) -> float:
    """A scale that costs at most epsilon, from one that costs hardly more: it falls at least in proportion."""
    while epsilon < (got := cost(scale)) < math.inf:
        scale *= got / epsilon * (1 + 1e-11)
    if got <= epsilon:
        return scale
    raise PlanError(
        "noise for the asked privacy",
        expected="an epsilon and delta that integer noise can be shown to reach",
        got=f"epsilon {epsilon:g}, delta {delta:g}",
        do="Ask for an epsilon below 50 and a delta above 1e-12, or for epsilon inf, which adds no noise.",
    )


def _searched(sigma: float, rate: float, cost: Callable[[float], float], epsilon: float) -> float:
    """Sigma under subsampling, below one that is enough without, if that is enough; to one in 10^5."""
    low, high = sigma * rate, sigma
    if cost(high) > epsilon:
        return high
    while cost(low) <= epsilon:
        low, high = low / 2, low

    # On log scales cost is nearly a line.
    def over(log_scale: float) -> float:
        return math.log(min(max(cost(math.exp(log_scale)) / epsilon, 1e-3), 1e3))

    return math.exp(float(brentq(over, math.log(low), math.log(high), xtol=1e-5)))


def _answer(release: Release) -> PricedAnswer:
    moved = release.sensitivity
    return PricedAnswer(
        release.mechanism, release.scale, release.shares, moved.l1, moved.l2_squared, moved.touched, moved.shifts
    )


def _merged(releases: Iterable[Release]) -> tuple[tuple[Draw, int], ...]:
    """Equal answers counted, equal subsamples counted, all in one order: the same for the same multiset of answers."""
    counts: dict[str, Counter[PricedAnswer]] = {}
    drawn: dict[str, tuple[float, int]] = {}
    for release in releases:
        one = (release.rate, release.draws)
        if drawn.setdefault(release.draw, one) != one:
            raise ConfigError(f"rate of subsample {release.draw}", expected=drawn[release.draw], got=one)
        counts.setdefault(release.draw, Counter())[_answer(release)] += release.times
    draws: Counter[Draw] = Counter()
    for name, each in counts.items():
        rate, many = drawn[name]
        draws[Draw(rate, tuple(sorted(each.items())))] += many
    return tuple(sorted(draws.items()))


@functools.lru_cache(maxsize=4096)
def _at_delta(draws: tuple[tuple[Draw, int], ...], delta: float, *, by_norm: bool) -> float:
    probability(delta=delta)
    if not draws:
        return 0.0
    if any(answer.scale == 0 for draw, _ in draws for answer, _ in draw.answers):
        return math.inf
    gap, failure = _imperfection(draws)
    # Shares far below 2 grid units: no sensible bound is left.
    if gap > 1:
        return math.inf
    # Part of delta is set aside for the samplers' failure: as little as the resulting epsilon allows.
    for reserve in (1e-9, 1e-3):
        ideal = delta * (1 - reserve) * math.exp(-gap)
        bound = norm_epsilon(draws, ideal)
        if not by_norm:
            bound = min(bound, composed_epsilon(draws, ideal))
        bound += 2 * gap
        if failure == 0 or (bound < LARGEST_EXPONENT and (1 + math.exp(bound)) * failure <= reserve * delta):
            return bound
    return math.inf


def _imperfection(draws: tuple[tuple[Draw, int], ...]) -> tuple[float, float]:
    """Of the noise that is drawn: g and c U TV of the module's docstring."""
    gap = failure = 0.0
    for draw, repeats in draws:
        for answer, times in draw.answers:
            coordinates = repeats * times * answer.touched
            if answer.mechanism == "gaussian":
                share = answer.scale / math.sqrt(answer.shares)
                gap += coordinates * (sum_gap(share, answer.shares) + ROUNDING_GAP)
                failure += coordinates * answer.shares * gaussian_tv(share)
            elif answer.mechanism == "laplace":
                failure += coordinates * answer.shares * laplace_tv(answer.scale, answer.shares)
    return gap, failure
