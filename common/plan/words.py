"""Sentences about a plan that both sides use."""


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


def few_corrupt(corrupt: int, parties: int) -> str:
    """Return the condition of a figure that relies on the noise of all hospitals but a few, as a clause."""
    return f"with at most {corrupt} of {parties} hospitals corrupt" if corrupt else "with no hospital corrupt"
