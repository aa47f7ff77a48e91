"""Sentences about a plan that both sides use."""

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


def few_corrupt(corrupt: int, parties: int, language: str = ENGLISH) -> str:
    """Return the condition of a figure that relies on the noise of all hospitals but a few, as a clause."""
    say = catalogue(__package__, language).corrupt
    return str((say.few if corrupt else say.none).format(corrupt, parties))
