"""Sentences about a plan that both sides use."""

import math


def differences(max_dropouts: int) -> str:
    """Return a clause that says when the difference of two sums reveals one party's answer despite secure aggregation.

    Args:
        max_dropouts: Maximum number of parties that may be missing from a sum.
    """
    dropouts = (
        "drops out, or is left out by the coordinator, between two questions that are nearly the same, as those of "
        "consecutive rounds can be, or "
    )
    return (
        "each question of a run is summed over one set of hospitals only. But where a hospital "
        f"{dropouts if max_dropouts else ''}takes part in one of two runs that ask nearly the same, the difference of "
        f"the sums shows that hospital's own answer, under the noise of both"
    )


def subsampled(rate: float, *, by_user: bool, redrawn: bool, steps: bool) -> str:
    """Return a clause that says who takes part in the answers to a query of a random subset of the records.

    Args:
        rate: Probability of taking part.
        by_user: Whether the records of a user take part together.
        redrawn: Whether a new subset is drawn for each answer or, if `steps`, for each training step.
        steps: Whether the query trains a model.
    """
    drawn = f"anew for each {'training step' if steps else 'answer'}" if redrawn else "once for all answers"
    return f"each {'user' if by_user else 'record'} takes part with probability {rate:g}, drawn {drawn}"


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
