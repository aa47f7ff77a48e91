"""What released answers cost: (epsilon, delta) of integer queries with discrete Gaussian noise, composed.

Every result is rounded toward more privacy lost. Two ways to account, both upper bounds:

- `epsilon`, where each coordinate's worst shift is known (one record a unit): the privacy loss distribution on the
  lattice itself, from dp_accounting (Koskela et al. 2020; "connect the dots", Doroshenko et al. 2022). Per coordinate a
  larger shift dominates a smaller one, because the discrete Gaussian is log-concave, so the declared shifts dominate
  whatever a record does, and domination survives composition (Zhu, Dong and Wang 2022).
- `epsilon_by_norm`, where only the l2 norm of the shift is bounded (user level: a user's m contributions may lie in any
  directions to each other, and it is not proved that parallel ones are the worst on a lattice). A discrete Gaussian of
  variance sigma^2 around an integer c is, up to a factor exp(+-rho), a continuous Gaussian of variance
  sigma^2 - v around c, rounded at random to y + (discrete Gaussian of variance v centred at y): integrating over y
  gives exp(-(k - c)^2 / (2 sigma^2)) exactly but for the normaliser sum_k exp(-(k - y)^2 / (2v)), which by Poisson
  summation is within 1 +- 2.01 exp(-2 pi^2 v) of a constant. So the release is post-processing of the continuous
  mechanism, whose privacy depends on the l2 norm alone and is known in closed form. v = 9/4 makes rho = 2.1e-19 and
  costs about 1/sigma^2 of sigma: nothing on a grid of thousands, against 6 to 8 % by zero-concentrated DP.

The noise that is really drawn differs in two ways, and both results include them:

- a sum of U shares of scale s against the ideal discrete Gaussian: each probability off by at most a factor
  exp(+-tau), tau = 10 sum_{0<k<U} exp(-2 pi^2 s^2 k / (k + 1)) (Kairouz, Liu and Steinke 2021);
- each share off by `samplers.gaussian_tv` in total variation, TV.

With c touched coordinates in all, coordinates that no unit can touch being identical either way,

    delta(epsilon) <= exp(c tau) delta_ideal(epsilon - 2 c tau) + (1 + e^epsilon) c U TV.

TV is of the order of 1e-32, so that above epsilon = 50 or so nothing is proved any more and the result is infinite.
"""

import functools
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.optimize import brentq
from scipy.special import log_ndtr

from common.errors import ConfigError, PlanError
from common.privacy.samplers import gaussian_tv
from common.queries import Sensitivity
from common.validate import at_least, in_range, one_of, positive, probability

_ROUNDING_VARIANCE = 2.25
_LARGEST_MU = 15
"""In standard deviations of the noise: beyond it epsilon is above 70, and not worth telling from infinity."""
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
    """

    mechanism: str
    sensitivity: Sensitivity
    scale: float
    times: int = 1
    shares: int = 1
    rate: float = 1.0
    draw: str = ""

    def __post_init__(self) -> None:
        one_of(("gaussian", "laplace", "pure"), mechanism=self.mechanism)
        at_least(0, scale=self.scale)
        at_least(1, times=self.times, shares=self.shares)
        in_range(0, 1, rate=self.rate)
        if self.rate == 0 or (self.rate < 1) != bool(self.draw):
            raise ConfigError("rate", expected="above 0, and below 1 with the name of a draw", got=self.rate)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return json.loads(json.dumps(asdict(self)))  # type: ignore[no-any-return]

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> "Release":
        """Inverse of `to_dict`."""
        sensitivity = {**plain["sensitivity"], "shifts": tuple(plain["sensitivity"]["shifts"])}
        return Release(**{**plain, "sensitivity": Sensitivity(**sensitivity)})


def epsilon(releases: Iterable[Release], delta: float) -> float:
    """Epsilon of all releases together: on the lattice, or by norm as soon as one release holds users' records.

    0 for no release; infinite if one has no noise.
    """
    return _at_delta(tuple(releases), delta, by_norm=False)


def epsilon_by_norm(releases: Iterable[Release], delta: float) -> float:
    """As `epsilon`, but in closed form from the l2 norms of the shifts: fast, and hardly larger on fine grids."""
    return _at_delta(tuple(releases), delta, by_norm=True)


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Delta of a continuous Gaussian of sensitivity mu standard deviations (Balle and Wang 2018, theorem 8)."""
    return float(math.exp(log_ndtr(mu / 2 - epsilon / mu)) - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Inverse of `gaussian_delta`, rounded up."""
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    # The bound by zero-concentrated DP is an upper end (Bun and Steinke 2016, proposition 1.3).
    highest = mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta))
    return float(brentq(lambda epsilon: gaussian_delta(epsilon, mu) - delta, 0.0, highest, xtol=1e-13)) * _UP + 1e-12


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The mu for which a continuous Gaussian is exactly (epsilon, delta)-DP."""
    root = math.sqrt(math.log(1 / delta))
    lowest = math.sqrt(2) * (math.sqrt(root * root + epsilon) - root)
    highest = math.sqrt(2 * epsilon) + 100
    return float(brentq(lambda mu: gaussian_delta(epsilon, mu) - delta, lowest, highest, xtol=1e-15, rtol=1e-13))


def calibrate_gaussian(
    shifts: tuple[int, ...], times: int, epsilon: float, delta: float, *, shares: int = 1, records: int = 1
) -> float:
    """The smallest sigma, in grid units, that makes `times` answers (epsilon, delta)-DP, to about one in 10^6.

    The continuous Gaussian's sigma (its composition is one Gaussian of sensitivity l2 sqrt(times)), then nudged up
    until the noise that is really added is within epsilon. Infinite epsilon: 0.

    Raises:
        ConfigError: If epsilon or delta is out of range.
        PlanError: If no sigma can be shown to reach them.
    """
    sigma = continuous_sigma(shifts, times, epsilon, delta)
    if sigma == 0:
        return sigma

    def reached() -> float:
        return _at_delta(
            (Release(shifts=shifts, sigma=sigma, times=times, shares=shares, records=records),), delta, by_norm=False
        )

    # Epsilon falls at least in proportion to 1 / sigma.
    while epsilon < (got := reached()) < math.inf:
        sigma *= got / epsilon * (1 + 1e-9)
    if got <= epsilon:
        return sigma
    raise PlanError(
        "noise for the asked privacy",
        expected="an epsilon and delta that discrete Gaussian noise can be shown to reach",
        got=f"epsilon {epsilon:g}, delta {delta:g}",
        do="Ask for an epsilon below 50 and a delta above 1e-12, or for epsilon inf, which adds no noise.",
    )


def continuous_sigma(shifts: tuple[int, ...], times: int, epsilon: float, delta: float) -> float:
    """Sigma of a continuous Gaussian for `times` answers, in grid units; 0 for infinite epsilon."""
    probability(delta=delta)
    if epsilon == math.inf:
        return 0.0
    positive(epsilon=epsilon)
    return math.sqrt(times * sum(shift * shift for shift in shifts)) / gaussian_mu(epsilon, delta)


def paper_sigma(epsilon: float, delta: float, times: int) -> float:
    """Sigma in votes by the formula of WASP's paper, for comparison alone.

    Delta sqrt(times) sqrt(2 ln(1.25 / delta)) / epsilon with Delta = 4, which bounds the l1 change, not the l2 one; and
    the formula is proved for epsilon < 1 only.
    """
    return 4 * math.sqrt(times) * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def sum_gap(share_sigma: float, shares: int) -> float:
    """Tau: the largest |ln| of a probability under the sum of shares over that under one discrete Gaussian."""
    return 10 * math.fsum(math.exp(-2 * math.pi**2 * share_sigma**2 * k / (k + 1)) for k in range(1, shares))


@functools.lru_cache(maxsize=4096)
def _at_delta(releases: tuple[Release, ...], delta: float, *, by_norm: bool) -> float:
    probability(delta=delta)
    if not releases:
        return 0.0
    if any(release.sigma == 0 for release in releases):
        return math.inf
    gap = sum(release.touched * sum_gap(release.share_sigma, release.shares) for release in releases)
    failure = sum(release.touched * release.shares * gaussian_tv(release.share_sigma) for release in releases)
    # Shares far below 2 grid units: no sensible bound is left.
    if gap > 1:
        return math.inf
    # Part of delta is set aside for the samplers' failure: as little as the resulting epsilon allows.
    for reserve in (1e-9, 1e-3):
        ideal = delta * (1 - reserve) * math.exp(-gap)
        if by_norm or any(release.records > 1 for release in releases):
            bound = _continuous(releases, ideal) + 2 * gap
        else:
            bound = _lattice(releases, ideal) + 2 * gap
        if bound < 700 and (1 + math.exp(bound)) * failure <= reserve * delta:
            return bound
    return math.inf


def _continuous(releases: tuple[Release, ...], delta: float) -> float:
    """Epsilon from l2 norms alone; the second way in the module's docstring."""
    if any(release.sigma**2 <= _ROUNDING_VARIANCE for release in releases):
        return math.inf
    mu = math.sqrt(
        sum(
            release.times * sum(shift * shift for shift in release.shifts) / (release.sigma**2 - _ROUNDING_VARIANCE)
            for release in releases
        )
    )
    if mu > _LARGEST_MU:
        return math.inf
    error = 2.01 * math.exp(-2 * math.pi**2 * _ROUNDING_VARIANCE)
    gap = 2.001 * error * sum(release.touched for release in releases)
    return gaussian_epsilon(delta * math.exp(-gap), mu) + 2 * gap


def _lattice(releases: tuple[Release, ...], delta: float) -> float:
    """Epsilon from the composed privacy loss distribution; the first way in the module's docstring."""
    counts: Counter[tuple[float, int]] = Counter()
    for release in releases:
        for shift in release.shifts:
            counts[release.sigma, shift] += release.times
    mu = math.sqrt(sum(count * (shift / sigma) ** 2 for (sigma, shift), count in counts.items()))
    if mu > _LARGEST_MU:
        return math.inf
    # The grid follows the size of the losses, so that precision and time hardly depend on them.
    interval = 1e-4 * max(min(1.0, 5 * mu), mu)
    composed = pld.identity(value_discretization_interval=interval)
    for (sigma, shift), count in counts.items():
        one = pld.from_discrete_gaussian_mechanism(
            sigma, sensitivity=shift, use_connect_dots=True, value_discretization_interval=interval
        )
        composed = composed.compose(one.self_compose(count))
    return float(composed.get_epsilon_for_delta(delta)) * _UP
