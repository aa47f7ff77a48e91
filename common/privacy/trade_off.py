"""How well somebody can tell whether a unit took part: tighter than what its (epsilon, delta) alone implies.

Epsilon and delta are two numbers that many mechanisms have, and the worst of these is far worse than the noise that is
added: with (4, 1e-5), an even guess may be right in 98.21% of cases, yet with Gaussian noise of this epsilon and delta
it is right in 67.82% at most. This page derives such figures from the delta at every epsilon. Notation: P and Q are the
distributions of all answers with and without the unit, L = ln(dP / dQ) is the loss, and

    d(epsilon) = sup over events S of P(S) - e^epsilon Q(S) = E_P[max(0, 1 - e^(epsilon - L))].

Even guess. If both cases are equally likely, a guess "it took part" on an event S is right with probability
(P(S) + 1 - Q(S)) / 2, which is at most (1 + d(0)) / 2. The likelihood ratio's test reaches this.

Average belief. Somebody who believes beforehand, with probability p, that the unit took part, believes it afterwards
with probability b(L) = p e^L / (1 - p + p e^L). If the unit took part, the average of this belief is

    E_P[b(L)] = E_Q[f(dP / dQ)],    f(r) = p r^2 / (1 - p + p r),

and f is convex: a square divided by a linear function. So this is an f-divergence, which is a sum of deltas at all
epsilons with weights above 0 (Liese and Vajda 2006). A pair of distributions whose deltas are nowhere smaller therefore
bounds it, and the pairs of `common.privacy.losses` are such. An infinite loss counts as a belief of 1.

Highest belief, but for a fraction h of cases. For every epsilon < l,

    d(epsilon) >= E_P[(1 - e^(epsilon - L)) 1{L > l}] >= P(L > l) (1 - e^(epsilon - l)),

so that P(L > l) <= h for l = epsilon - ln(1 - d(epsilon) / h), for each epsilon with d(epsilon) < h. The least such l
bounds the loss, and so the belief b(l), in all but a fraction h of the cases in which the unit took part.

The sampled noise differs from the ideal noise by factors exp(+-g) and by t in total variation
(`common.privacy.accountant`). Its deltas are at most exp(g) d(epsilon - 2 g) + (1 + e^epsilon) t. The average belief is

    sup over functions 0 <= h <= 1 of  2 E_P[h] - E_M[h^2] / p,    M = (1 - p) Q + p P,

reached by h = b(L). So t adds at most (2 + 1 / p) t to it, and the factors multiply it by at most exp(3 g).

The pair of (epsilon, delta) alone is randomised response, with a probability delta of saying the truth in a way that
shows it (Kairouz, Oh and Viswanath 2015); it dominates all mechanisms with this epsilon and delta. It is the bound
where no losses are composed, and otherwise makes sure that no figure here is worse than that of epsilon and delta.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from common.privacy.loss_grid import ComposedLosses, Floats, LossGrid
from common.privacy.norms import LARGEST_EXPONENT
from common.validate import probability

_SLACK = 1e-10
"""More than the rounding errors of any sum over a grid."""
_EPSILONS = np.arange(0, 20, 1e-3)
"""Epsilons among which the bound on the highest belief is searched for; a loss of 20 leaves no doubt of anything."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Losses that dominate the ideal ones, and how far the sampled noise is from the ideal: g and t, as above."""

    losses: ComposedLosses
    gap: float = 0.0
    failure: float = 0.0

    @staticmethod
    def of_pair(epsilon: float, delta: float) -> "Bound":
        """Return the bound that holds for every mechanism with this epsilon and delta."""
        truth = (1 - delta) * np.array([expit(-epsilon), 0.0, expit(epsilon)])
        losses = LossGrid(epsilon, -1, truth, delta) if epsilon else LossGrid(1.0, 0, np.array([1 - delta]), delta)
        return Bound(ComposedLosses(losses, losses))

    def deltas(self, epsilons: Floats) -> Floats:
        """Return a bound on delta at each of these epsilons, (n,)."""
        ideal: Floats = self.losses.deltas(epsilons - 2 * self.gap)
        return math.exp(self.gap) * ideal + (1 + np.exp(epsilons)) * self.failure

    def average_belief(self, prior: float) -> float:
        """Return a bound on the average belief, if the unit took part, of somebody who believed `prior` before."""
        loss = self.losses.with_unit
        ideal = float(loss.probabilities @ expit(loss.losses + logit(prior))) + loss.infinite
        inexact = (2 + 1 / prior) * (self.failure + self.losses.rounding)
        return math.exp(3 * self.gap) * ideal + inexact


@dataclass(frozen=True, slots=True)
class TradeOff:
    """What somebody can find out about one unit, as the least of several bounds; without any bound, everything."""

    bounds: tuple[Bound, ...]

    @staticmethod
    def of(
        epsilon: float, delta: float, losses: ComposedLosses | None = None, gap: float = 0.0, failure: float = 0.0
    ) -> "TradeOff":
        """Return the trade-off of answers with this epsilon and delta, tighter if their ideal losses are known."""
        pair = (Bound.of_pair(epsilon, delta),) if epsilon <= LARGEST_EXPONENT else ()
        if not losses:
            return TradeOff(pair)
        return TradeOff((*pair, Bound(losses._replace(rounding=losses.rounding + _SLACK), gap, failure)))

    def delta(self, epsilon: float) -> float:
        """Return an upper bound of delta at this epsilon, 0 or more."""
        return min((float(bound.deltas(np.array([epsilon]))[0]) for bound in self.bounds), default=1.0)

    @property
    def even_guess(self) -> float:
        """An upper bound of the probability of a right guess whether a unit took part, yes and no equally likely."""
        return min(1.0, (1 + self.delta(0.0)) / 2)

    def average_belief(self, prior: float) -> float:
        """Return a bound on the average belief, if a unit took part, of somebody who believed `prior` before."""
        probability(prior=prior)
        return min((bound.average_belief(prior) for bound in self.bounds), default=1.0)

    def highest_belief(self, prior: float, but: float) -> float:
        """Return a bound on the belief, if a unit took part, that is exceeded in at most a fraction `but` of cases."""
        probability(prior=prior, but=but)
        deltas = np.minimum.reduce([np.ones_like(_EPSILONS), *(bound.deltas(_EPSILONS) for bound in self.bounds)])
        within = deltas < but
        losses = _EPSILONS[within] - np.log1p(-deltas[within] / but)
        return float(expit(losses.min() + logit(prior))) if within.any() else 1.0
