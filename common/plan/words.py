"""Sentences about a plan that both sides use: the coordinator's are about parties, a hospital's about hospitals."""


def differences(max_dropouts: int, *, one: str = "party", many: str = "parties") -> str:
    """Return a clause on when the difference of two sums shows one party's answer in spite of secure aggregation.

    Args:
        max_dropouts: Largest number of parties that may be missing from a sum.
        one: Word for a party.
        many: Plural of that word.
    """
    dropouts = (
        "drops out, or is left out by the coordinator, between two questions that are nearly the same, as those of "
        "consecutive rounds can be, or "
    )
    return (
        f"each question of a run is summed over one set of {many} only. But where a {one} "
        f"{dropouts if max_dropouts else ''}takes part in one of two runs that ask nearly the same, the difference of "
        f"the sums shows that {one}'s own answer, under the noise of both"
    )
