"""The privacy cost, as a composed (epsilon, delta), of answers to integer queries, and the noise for a given cost.

Every result is rounded toward more privacy loss. There are two methods of accounting, and both yield upper bounds:

- `epsilon`: from the composed privacy loss distribution (`common.privacy.losses`), or the other method's result if that
  is smaller;
- `epsilon_by_norm`: from norms, which is fast (`common.privacy.norms`).

`trade_off` says what an attacker can make of these losses, which is less than epsilon alone implies.

Poisson subsampling (each unit takes part with probability `rate`, independently): the answers on one subsample are
composed, and the result is amplified; then the amplified results of all subsamples are composed. An answer may depend
on all earlier ones, even where answers on different subsamples alternate (Vadhan and Zhang 2023, concurrent
composition).

The sampled noise differs from the ideal noise in three ways, for which both results account:

- a sum of U Gaussian shares of scale s against one discrete Gaussian: each probability differs by at most a factor
  exp(+-tau), `gaussian.sum_gap`; a sum of Polya shares is exactly a discrete Laplace;
- a discrete Gaussian against a continuous one where only its norm counts: another factor, exp(+-rho);
- each share differs by `samplers.gaussian_tv` or `samplers.laplace_tv` in total variation, TV.

With c touched coordinates in total (coordinates that no unit can touch are identical either way),

    delta(epsilon) <= exp(g) delta_ideal(epsilon - 2 g) + (1 + e^epsilon) c U TV,    g = c (tau + rho).

This holds under subsampling too: given the other participants, an answer is a mixture of the answer with the unit and
the answer without it, and a mixture differs by no more, in factors and in total variation, than its worst component.

TV is of the order of 1e-32, so that above epsilon = 50 or so nothing can be proved and the result is infinite.
"""

import functools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from common.errors import ConfigError, PlanError
from common.privacy.draws import Draw, PricedAnswer, draws_of_all_units
from common.privacy.gaussian import (
    ROUNDING_GAP,
    ROUNDING_VARIANCE,
    gaussian_mu,
    sum_gap,
)
from common.privacy.norms import LARGEST_EXPONENT, norm_epsilon, quotient_up, unamplified_epsilon
from common.privacy.samplers import gaussian_tv, laplace_tv
from common.privacy.sensitivity import Sensitivity
from common.validate import at_least, in_range, one_of, positive, probability

if TYPE_CHECKING:
    from common.privacy.trade_off import TradeOff


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedAnswers:
    """Answers of one kind that have been, or may be, released.

    Attributes:
        mechanism: "gaussian" or "laplace": discrete noise on an integer vector; "pure": a mechanism inside a party that
            is (l1 / scale, 0)-DP.
        sensitivity: Sensitivity of one answer.
        scale: Scale of the whole noise, in grid units: sigma of a discrete Gaussian, b of a discrete Laplace with
            probabilities proportional to exp(-|k| / b), or l1 / epsilon of a pure mechanism. 0 means no noise or no
            proof, and so an infinite epsilon.
        times: Number of such answers.
        shares: Number of independent shares that make up the noise: Gaussians of scale sigma / sqrt(shares), or Polya
            shares of b.
        rate: Probability that a unit takes part, independently of the others (Poisson subsampling); 1 if all units take
            part.
        draw: Name of the subsample; releases with the same name were answered on the same subsample. Empty if rate is
            1.
        draws: Number of independent subsamples with this name and rate, each with `times` answers, as in DP-SGD steps.
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
            raise ConfigError("rate", expected="above 0; below 1 if and only if the draw has a name", got=self.rate)
        if self.draws > 1 and not self.draw:
            raise ConfigError("draws", expected="1 without subsampling", got=self.draws)

    def to_dict(self) -> dict[str, Any]:
        """Return the release as plain values, ready for JSON."""
        return json.loads(json.dumps(asdict(self)))  # type: ignore[no-any-return]

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> "ReleasedAnswers":
        """Build a release from the result of `to_dict`."""
        sensitivity = {**plain["sensitivity"], "shifts": tuple(plain["sensitivity"]["shifts"])}
        return ReleasedAnswers(**{**plain, "sensitivity": Sensitivity(**sensitivity)})


def epsilon(releases: Iterable[ReleasedAnswers], delta: float) -> float:
    """Return the smallest provable epsilon of all releases. Only the number of each kind matters, not their order.

    It is 0 if there are no releases, and infinite if a release has no noise. The computation takes up to about two
    seconds.

    Raises:
        ConfigError: If delta is not a probability, or answers on one subsample have different rates.
    """
    return _at_delta(_merged(releases), delta, by_norm=False)


def epsilon_by_norm(releases: Iterable[ReleasedAnswers], delta: float) -> float:
    """Return a bound on epsilon from norms and epsilons alone, which is fast to compute.

    It is never below `epsilon`, and close to it for Gaussians.
    """
    return _at_delta(_merged(releases), delta, by_norm=True)


def trade_off(releases: Iterable[ReleasedAnswers], delta: float) -> "TradeOff":
    """Return how well somebody can tell whether a unit took part in all releases: bounds rounded toward certainty.

    Args:
        releases: The releases.
        delta: Delta whose epsilon also counts as a bound, so that nothing is worse than this epsilon implies.
    """
    return _trade_off(_merged(releases), delta)


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
    """Return the smallest scale, in grid units, with which `times` answers are (epsilon, delta)-DP.

    For a Gaussian, the scale is the continuous Gaussian's sigma, or about a millionth more if that is too small. With
    subsampling, it is the smallest sigma up to a relative error of 1e-5. For Laplace and pure mechanisms, the scale is
    `times` l1 / epsilon, which needs no delta. With subsampling at rate q, this epsilon is replaced by x such that
    epsilon = ln(1 + q (e^x - 1)).

    Args:
        mechanism: As in `ReleasedAnswers`.
        sensitivity: Sensitivity of one answer.
        times: Number of answers.
        shares: As in `ReleasedAnswers`.
        rate: As in `ReleasedAnswers`.
        redraw: Whether each answer has a separate subsample; otherwise one subsample serves all answers.
        epsilon: Epsilon of all answers together; if it is infinite, 0 is returned.
        delta: Delta of all answers together.

    Raises:
        ConfigError: If a value is out of range.
        PlanError: If no scale can be shown to reach this epsilon and delta.
    """
    unscaled = ReleasedAnswers(
        mechanism=mechanism,
        sensitivity=sensitivity,
        scale=1.0,
        times=times,
        shares=shares,
        rate=rate,
        draw="" if rate == 1 else "draw",
    )
    sigma = continuous_sigma(sensitivity, times, epsilon, delta)
    if sigma == 0:
        return sigma
    apart = redraw and rate < 1

    def cost(scale: float) -> float:
        answer = _answer(unscaled)._replace(scale=scale)
        draws = (Draw(rate, ((answer, 1 if apart else times),)), times if apart else 1)
        return _at_delta((draws,), delta, by_norm=mechanism != "gaussian")

    if mechanism != "gaussian":
        within = unamplified_epsilon(epsilon / times if apart else epsilon, rate)
        return _nudged(quotient_up(sensitivity.l1 * (1 if apart else times), within), cost, epsilon, delta)
    if not sensitivity.shifts:
        sigma = math.hypot(sigma, math.sqrt(ROUNDING_VARIANCE))
    return _nudged(sigma if rate == 1 else _searched(sigma, rate, cost, epsilon), cost, epsilon, delta)


def continuous_sigma(sensitivity: Sensitivity, times: int, epsilon: float, delta: float) -> float:
    """Return the sigma of a continuous Gaussian for `times` answers, in grid units; 0 for infinite epsilon."""
    probability(delta=delta)
    if epsilon == math.inf:
        return 0.0
    positive(epsilon=epsilon)
    return math.sqrt(times) * sensitivity.l2 / gaussian_mu(epsilon, delta)


def paper_sigma(l1: float, times: int, epsilon: float, delta: float) -> float:
    """Return the sigma, in units of l1, of the classical Gaussian mechanism of WASP and Aug-PE, for comparison.

    The formula uses a bound on the l1 change instead of the l2 change, and is proved only for epsilon < 1.
    """
    return l1 * math.sqrt(times) * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def _nudged(scale: float, cost: Callable[[float], float], epsilon: float, delta: float) -> float:
    """Return the scale, raised until it costs at most epsilon, given that doubling a scale at least halves its cost."""
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
    """Return the sigma needed with subsampling, to a relative error of 1e-5; `sigma` suffices without subsampling."""
    from scipy.optimize import brentq

    low, high = sigma * rate, sigma
    if cost(high) > epsilon:
        return high
    while cost(low) <= epsilon:
        low, high = low / 2, low

    # On log scales the cost is nearly linear.
    def over(log_scale: float) -> float:
        return math.log(min(max(cost(math.exp(log_scale)) / epsilon, 1e-3), 1e3))

    return math.exp(float(brentq(over, math.log(low), math.log(high), xtol=1e-5)))


def _answer(release: ReleasedAnswers) -> PricedAnswer:
    change = release.sensitivity
    return PricedAnswer(
        release.mechanism, release.scale, release.shares, change.l1, change.l2_squared, change.touched, change.shifts
    )


def _merged(releases: Iterable[ReleasedAnswers]) -> tuple[tuple[Draw, int], ...]:
    """Return the canonical form of a multiset of releases: equal answers and subsamples are merged, then sorted."""
    counts: dict[str, Counter[PricedAnswer]] = {}
    subsamples: dict[str, tuple[float, int]] = {}
    for release, number in Counter(releases).items():  # a long ledger has thousands of equal releases
        subsample = (release.rate, release.draws)
        if subsamples.setdefault(release.draw, subsample) != subsample:
            expected = subsamples[release.draw]
            raise ConfigError(f"rate of subsample {release.draw}", expected=expected, got=subsample)
        counts.setdefault(release.draw, Counter())[_answer(release)] += release.times * number
    draws: Counter[Draw] = Counter()
    for name, answers in counts.items():
        rate, repeats = subsamples[name]
        draws[Draw(rate, tuple(sorted(answers.items())))] += repeats
    return tuple(sorted(draws.items()))


@functools.lru_cache(maxsize=4096)
def _at_delta(draws: tuple[tuple[Draw, int], ...], delta: float, *, by_norm: bool) -> float:
    probability(delta=delta)
    if not draws:
        return 0.0
    if any(answer.scale == 0 for draw, _ in draws for answer, _ in draw.answers):
        return math.inf
    gap, failure = _imperfection(draws)
    # Shares far below 2 grid units allow no sensible bound.
    if gap > 1:
        return math.inf
    # A part of delta is reserved for the samplers' failure: as little as the resulting epsilon allows.
    for reserve in (1e-9, 1e-3):
        ideal = delta * (1 - reserve) * math.exp(-gap)
        bound = norm_epsilon(draws, ideal)
        if not by_norm:
            from common.privacy.losses import composed_epsilon

            bound = min(bound, composed_epsilon(draws, ideal))
        bound += 2 * gap
        if failure == 0 or (bound < LARGEST_EXPONENT and (1 + math.exp(bound)) * failure <= reserve * delta):
            return bound
    return math.inf


@functools.lru_cache(maxsize=16)
def _trade_off(draws: tuple[tuple[Draw, int], ...], delta: float) -> "TradeOff":
    from common.privacy.losses import composed_losses
    from common.privacy.trade_off import TradeOff

    cost = _at_delta(draws, delta, by_norm=False)
    if not draws or cost == math.inf:
        return TradeOff.of(cost, 0.0)
    # Where too many subsamples would have to be composed, the same answers of all units dominate them.
    losses = composed_losses(draws) or composed_losses(draws_of_all_units(draws))
    return TradeOff.of(cost, delta, losses, *_imperfection(draws))


def _imperfection(draws: tuple[tuple[Draw, int], ...]) -> tuple[float, float]:
    """Return the imperfection of the sampled noise: g and c U TV in the notation of the module's docstring."""
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
