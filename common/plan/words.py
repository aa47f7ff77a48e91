"""Sentences about a plan that both sides use: the coordinator's are about parties, a hospital's about hospitals."""


def differences(max_dropouts: int, *, one: str = "party", many: str = "parties") -> str:
    """Sentence on when sums over different parties can be subtracted, where secure aggregation hides single answers.

    Args:
        max_dropouts: Largest number of parties that may be missing from a sum.
        one: Word for a party.
        many: The plural.
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
