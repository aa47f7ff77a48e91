"""One kind of query in a plan, and the releases by which its answers are accounted for."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from common.errors import ConfigError
from common.privacy.accountant import ReleasedAnswers
from common.privacy.mechanisms import SUMMED
from common.queries.page import Spec
from common.validate import at_least, in_range, integers, one_of, printable

SMALLEST_RATE = 2.0**-40


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedQuery:
    """A query that may be asked up to `times` times.

    Attributes:
        name: Name in statements and ledgers.
        spec: The query's specification, with its sensitivity.
        times: Number of answers that are paid for.
        mechanism: "gaussian" or "laplace", summed over the parties; "sparse vector", "permute and flip", "exponential",
            "gaussian max" or "dp-sgd", inside each party; "none" for texts without noise.
        scale: Scale of the noise in grid units; 0 means no noise. For a sum, this is sigma of the Gaussian or b of the
            Laplace distribution for U shares together, the minimum noise in a sum. For a mechanism inside a party, it
            is the mechanism's b or sigma (see the specification).
        share: Fraction of epsilon that calibration assigns to the query.
        rate: Probability with which each unit takes part in an answer (Poisson subsampling); 1 if all units take part.
        redraw: Whether each answer has a separate subsample; otherwise one subsample serves all answers.
        pure: Whether calibration derives the query's noise from its fraction of epsilon alone, without any delta, and
            then leaves this noise unchanged.
    """

    name: str
    spec: Spec
    times: int = 1
    mechanism: str = "gaussian"
    scale: float = 0.0
    share: float = 1.0
    rate: float = 1.0
    redraw: bool = False
    pure: bool = False

    def __post_init__(self) -> None:
        printable(name=self.name)
        integers(1, times=self.times)
        one_of(f"mechanism of {self.name}", self.mechanism, among=self.spec.mechanisms)
        at_least(0, scale=self.scale)
        in_range(SMALLEST_RATE, 1, share=self.share, rate=self.rate)
        if type(self.redraw) is not bool or (self.redraw and self.rate == 1):
            raise ConfigError(
                f"subsampling of {self.name}",
                expected="redraw true or false, and true only below rate 1",
                got=f"rate {self.rate:g}, redraw {self.redraw}",
            )
        if type(self.pure) is not bool or (self.pure and (self.mechanism == "gaussian" or self.rate < 1)):
            raise ConfigError(
                f"pure noise of {self.name}",
                expected="a mechanism other than Gaussian, at rate 1",
                got=f"{self.pure!r}, {self.mechanism}, rate {self.rate:g}",
            )
        if self.mechanism == "dp-sgd" and self.redraw != (self.rate < 1):
            raise ConfigError(f"subsampling of {self.name}", expected="redraw exactly below rate 1", got=self.redraw)
        if self.mechanism == "none" and self.scale:
            raise ConfigError(f"scale of {self.name}", expected="0, because there is no noise", got=self.scale)
        # One spelling for each number, so that equal plans have equal digests.
        for number in ("scale", "share", "rate"):
            object.__setattr__(self, number, float(getattr(self, number)) + 0.0)  # -0.0 becomes 0.0

    @property
    def summed(self) -> bool:
        """Whether the answer is a sum over the parties, and not one noised and unmasked answer from each party."""
        return self.mechanism in SUMMED

    @property
    def noise(self) -> str:
        """Mechanism that the accountant assumes for the answer: "gaussian", "laplace" or "pure"."""
        return self.mechanism if self.summed else "gaussian" if self.mechanism == "dp-sgd" else "pure"

    @property
    def noise_deviation(self) -> float:
        """Standard deviation of a coordinate's noise in a sum, in the answer's unit: sigma, or sqrt(2) b for Laplace.

        This is the noise of the planned U shares. With more survivors, and with colluders' shares, a sum has more
        noise.
        """
        factor = {"gaussian": 1.0, "laplace": math.sqrt(2)}[self.mechanism]
        return factor * self.scale / self.spec.grid

    @property
    def steps(self) -> int:
        """Number of noised sums behind one answer: for DP-SGD the number of training steps, otherwise 1."""
        return self.spec.steps

    @property
    def unproven(self) -> bool:
        """Whether the release has no privacy proof, however large its noise."""
        return self.spec.unproven

    @property
    def without_noise(self) -> bool:
        """Whether the plan provides for no noise in answers that could have noise."""
        return self.scale == 0 and self.mechanism != "none"


def release(query: PlannedQuery, *, shares: int, planned: int, draw: str = "", times: int = 1) -> ReleasedAnswers:
    """Return the release of `times` answers, with `shares` of the `planned` noise shares unknown to the observer."""
    values: dict[str, Any] = {
        "sensitivity": query.spec.sensitivity,
        "rate": query.rate,
        "draw": draw,
        "times": times,
    }
    if query.unproven or query.scale == 0:
        return ReleasedAnswers(mechanism="pure", scale=0.0, **values)
    if query.mechanism == "dp-sgd":
        # Every step of every answer is one sum, over all units or over a subsample.
        sums = {"draws" if draw else "times": query.steps * times}
        return ReleasedAnswers(mechanism="gaussian", scale=query.scale, **{**values, "times": 1, **sums})
    if query.mechanism == "gaussian":
        return ReleasedAnswers(
            mechanism="gaussian", scale=query.scale * math.sqrt(shares / planned), shares=shares, **values
        )
    if query.mechanism == "laplace" and shares >= planned:
        return ReleasedAnswers(mechanism="laplace", scale=query.scale, shares=shares, **values)
    if query.mechanism == "laplace":
        return ReleasedAnswers(mechanism="pure", scale=polya_scale(query.scale, shares / planned), **values)
    return ReleasedAnswers(mechanism="pure", scale=query.scale, **values)


def polya_scale(scale: float, shape: float) -> float:
    """Return the b' for which a share of discrete Laplace noise makes an answer (l1 / b', 0)-DP.

    The share is the difference of two negative binomials with r = `shape` < 1 and alpha = exp(-1/b). Their
    probabilities p_k have p_(k+1) / p_k = alpha (k + r) / (k + 1), which grows with k, so they are log-convex; so is
    P(k) = sum_j p_j p_(j+k) for k >= 0, as a sum of log-convex functions of k. Hence P(k) / P(k+1) is largest at 0, and
    one grid unit of shift costs 1 / b' = ln(P(0) / P(1)).
    """
    k = np.arange(math.ceil(45 * scale) + 2)
    logs = gammaln(k + shape) - gammaln(k + 1) - k / scale
    weights = np.exp(logs - logs.max())
    return float((1 - 1e-9) / math.log(weights @ weights / (weights[:-1] @ weights[1:])))


def subsample(query: PlannedQuery, nth: int, attempt: int) -> str:
    """Return the name of the subsample for an attempt at the nth answer; empty if all units take part.

    Plan and ledger price answers on subsamples of one name as answers on one subsample, so that independent subsamples
    need different names, within a query and across the queries of a plan.
    """
    if query.rate == 1:
        return ""
    name = f"{query.name}/{nth}" if query.redraw else query.name
    # A further attempt at an answer is made on the same subsample, but a model is trained on other ones.
    return f"{name}/{attempt}" if query.mechanism == "dp-sgd" else name


def draws(query: PlannedQuery, attempts: int) -> dict[str, int]:
    """Return how many of the query's answers, with `attempts` attempts each, use each subsample, keyed by its name."""
    return Counter(subsample(query, nth, attempt) for nth in range(query.times) for attempt in range(attempts))
