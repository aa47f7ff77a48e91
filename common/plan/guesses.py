"""What somebody can find out about one record, as percentages for people, rounded up, and a word for it.

Two figures answer "how often is a guess right?". `right` is that of the noise that a plan adds
(`common.privacy.trade_off`). `worst` is that of the worst mechanism with the same epsilon and delta, far above it.

The word follows from `right`, and from a belief of 1 in 100, since a secret random choice of records can make even
guesses poor although the few who are chosen are hardly hidden. Whatever epsilon is, each record may be published with
probability delta.

    word      right         a belief of 1 in 100 becomes, in all but 1 of 1,000 cases    delta
    strong    60% or less   10% or less                                                  1e-5 or less
    moderate  below 75%     50% or less                                                  1e-3 or less
    weak      anything else

75% lies halfway between a coin toss and certainty, 60% a fifth of the way; above 50% a belief says "rather yes".
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from common.privacy.trade_off import TradeOff

PRIORS = (100, 1000)
"""The beliefs whose change is stated, each as 1 in this number."""
CASES = 1000
"""A highest belief holds in all but 1 of this number of cases."""
SCALE = (
    "Strong means right in at most 60% of cases, and moderate in less than 75%, halfway from a coin toss to certainty. "
    "Also, a belief of 1 in 100 becomes at most 10% for strong, and at most 50% for moderate, in all but 1 of 1,000 "
    "cases. And δ is at most 1e-5 for strong, and at most 1e-3 for moderate. All else is weak."
)
"""The thresholds of the words, in sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """How sure somebody can become that a record took part, if it did.

    Attributes:
        one_in: The belief before reading, as 1 in this number.
        average: The average belief afterwards, in percent.
        highest: The belief that is exceeded in at most 1 of 1,000 cases, in percent.
    """

    one_in: int
    average: float
    highest: float

    def words(self, whose: str) -> str:
        """Return the belief before and after as a clause.

        Args:
            whose: What took part, such as "a record".
        """
        return (
            f"a belief of 1 in {self.one_in:,} that {whose} took part becomes, if it is true, {self.average:g}% on "
            f"average, and at most {self.highest:g}% in all but 1 of {CASES:,} cases"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Guesses:
    """What somebody who knows all other records can find out about one protected unit, as upper bounds.

    Attributes:
        right: Percentage of right guesses whether the unit took part, yes and no equally likely.
        worst: The same percentage for the worst mechanism with the same epsilon and delta.
        beliefs: How other beliefs beforehand can change.
        strength: "strong", "moderate" or "weak", or "none" if nothing is bounded; see the module's docstring.
    """

    right: float
    worst: float
    beliefs: tuple[Belief, ...]
    strength: str

    @staticmethod
    def of(trade_off: "TradeOff", epsilon: float, delta: float) -> "Guesses":
        """Return the guesses that a trade-off allows, beside those that its epsilon and delta alone would allow."""
        beliefs = tuple(
            Belief(
                one_in=number,
                average=_percent(trade_off.average_belief(1 / number)),
                highest=_percent(trade_off.highest_belief(1 / number, 1 / CASES)),
            )
            for number in PRIORS
        )
        right = _percent(trade_off.even_guess)
        word = "none" if math.isinf(epsilon) else _strength(right, beliefs[0].highest, delta)
        return Guesses(right=right, worst=worst_guesses(epsilon, delta), beliefs=beliefs, strength=word)

    @staticmethod
    def of_pair(epsilon: float, delta: float) -> "Guesses":
        """Return the guesses that epsilon and delta allow where no more is known of the noise."""
        from common.privacy.trade_off import TradeOff

        return Guesses.of(TradeOff.of(epsilon, delta), epsilon, delta)


def worst_guesses(epsilon: float, delta: float) -> float:
    """Return the percentage of right guesses, rounded up, that no mechanism with this epsilon and delta exceeds.

    It is (e^epsilon + delta) / (1 + e^epsilon), which follows by adding the two inequalities that bound a test's
    errors, P_FA + e^epsilon P_MD >= 1 - delta and its mirror image (Kairouz, Oh and Viswanath 2015).
    """
    odds = 1 / (1 + math.exp(-epsilon))
    return _percent(odds + delta * (1 - odds))


def _strength(right: float, belief: float, delta: float) -> str:
    if right >= 75 or belief > 50 or delta > 1e-3:
        return "weak"
    return "strong" if right <= 60 and belief <= 10 and delta <= 1e-5 else "moderate"


def _percent(share: float) -> float:
    return min(math.ceil(10_000 * share) / 100, 100.0)
