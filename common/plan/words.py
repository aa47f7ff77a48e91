"""Sentences about a plan that both sides use."""

import math

from common.page.words import ENGLISH, catalogue, spelt


def differences(max_dropouts: int, language: str = ENGLISH) -> str:
    """Return a clause that says when the difference of two sums reveals one party's answer despite secure aggregation.

    Args:
        max_dropouts: Maximum number of parties that may be missing from a sum.
        language: Code of the reader's language.
    """
    say = catalogue(__package__, language)
    return str(say.differences.format(f"{say.dropouts} " if max_dropouts else ""))


def subsampled(rate: float, *, by_user: bool, redrawn: bool, steps: bool, language: str = ENGLISH) -> str:
    """Return a clause that says who takes part in the answers to a query of a random subset of the records.

    Args:
        rate: Probability of taking part.
        by_user: Whether the records of a user take part together.
        redrawn: Whether a new subset is drawn for each answer or, if `steps`, for each training step.
        steps: Whether the query trains a model.
        language: Code of the reader's language.
    """
    say = catalogue(__package__, language).subsampled
    drawn = (say.step if steps else say.answer) if redrawn else say.once
    return str((say.user if by_user else say.record).format(spelt(f"{rate:g}", language), drawn))


def right_guesses(epsilon: float, delta: float) -> float:
    """Return the maximum percentage of correct guesses about which of two neighbouring data sets was used, rounded up.

    The two data sets are equally likely beforehand. The percentage is (e^epsilon + delta) / (1 + e^epsilon), which
    follows by adding the two inequalities that bound a test's errors, P_FA + e^epsilon P_MD >= 1 - delta and its mirror
    image (Kairouz, Oh and Viswanath, "The composition theorem for differential privacy", 2015).
    """
    odds = 1 / (1 + math.exp(-epsilon))
    return min(math.ceil(10_000 * (odds + delta * (1 - odds))) / 100, 100)


def strength(epsilon: float, delta: float) -> str:
    """Return a word for how strong the protection by this epsilon and delta is.

    Strong protection leaves guesses little better than a coin toss, and at most one record in a hundred thousand may be
    revealed completely: whatever epsilon is, each record may be published with probability delta. With weak protection,
    at worst nine of ten guesses are right, or one record in a thousand may be revealed completely.
    """
    right = right_guesses(epsilon, delta)
    if right >= 90 or delta > 1e-3:
        return "weak"
    return "strong" if right <= 60 and delta <= 1e-5 else "moderate"
