"""Splits one data set among parties, for simulations.

Every record is assigned to exactly one party. If there are more parties than records, or alpha is small, some parties
may be empty. This is a valid result and not an error, since some hospitals have no matching records.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from common.validate import at_least, positive

T = TypeVar("T")


def dirichlet(labels: Sequence[str], parties: int, alpha: float, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Split the records of each class among the parties, in proportions from a symmetric Dirichlet distribution.

    This is the partition of Yurochkin et al. 2019 (section 4), which WASP uses with alpha = 1. (Hsu et al. 2019 draw
    class proportions for each party instead, with parties of equal size.)

    Args:
        labels: Label of each record.
        parties: Number of parties, at least 1.
        alpha: Concentration, above 0. If alpha is small, each class is at few parties; if alpha is large, all parties
            are similar.
        rng: Generator for the proportions and for the assignment of records.

    Returns:
        The indices of each party's records, ascending.

    Raises:
        ConfigError: `parties` or `alpha` is out of range.
    """
    at_least(1, parties=parties)
    positive(section="federation", alpha=alpha)
    owner = np.empty(len(labels), np.int64)
    names = np.array(labels, dtype=str)
    for label in np.unique(names):
        members = rng.permutation(np.flatnonzero(names == label))
        shares = rng.dirichlet(np.full(parties, alpha))
        cuts = np.rint(np.cumsum(shares)[:-1] * len(members)).astype(np.int64)
        for party, part in enumerate(np.split(members, cuts)):
            owner[part] = party
    return [np.flatnonzero(owner == party) for party in range(parties)]


def iid(records: int, parties: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Deal shuffled records one by one, so that the sizes of the parties differ by at most 1.

    Args:
        records: Number of records.
        parties: Number of parties, at least 1.
        rng: Generator for the shuffle.

    Returns:
        The indices of each party's records, ascending.

    Raises:
        ConfigError: `parties` is out of range.
    """
    at_least(1, parties=parties)
    shuffled = rng.permutation(records)
    return [np.sort(shuffled[party::parties]) for party in range(parties)]
