"""One attempt at a query, the set-up that it uses, and its answer."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from common import messages as m
from common.domain import PartyId
from common.errors import DropoutError
from common.phrases import Phrase, list_parties
from common.queries import closed_set
from server.federation import secagg


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The answer to a query.

    Attributes:
        index: Index of the attempt in the plan.
        values: (length,) int64, exact sum of the survivors' counts and noise, in grid units; if the answers are not
            summed, (survivors, length), one row for each party.
        survivors: Number of parties whose answers are in `values`.
    """

    index: int
    values: NDArray[np.int64]
    survivors: int


@dataclass(slots=True, kw_only=True)
class Joined:
    """Outcome of a set-up, valid for all queries until one fails.

    Attributes:
        parties: The parties that take part.
        aggregation: Secure aggregation, ready for its rounds; None if it is off.
        deliveries: Shares for each party that has not answered a query since the set-up.
    """

    parties: frozenset[PartyId]
    aggregation: secagg.ReadyAggregation | None = None
    deliveries: dict[PartyId, m.Delivery] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt at a query, reserved on disk.

    Attributes:
        index: Index of the attempt in the plan.
        query: The query, exactly as it was first asked.
        digest: Digest of the query.
        joined: The set-up that the attempt uses.
        named: The survivors that were named before an interruption of the attempt; None if none were named.
    """

    index: int
    query: closed_set.Query
    digest: bytes
    joined: Joined
    named: frozenset[PartyId] | None

    def requests(self) -> dict[PartyId, m.Ask]:
        """Return each party's request: the query, with the party's shares if it has not answered since the set-up."""
        parties = self.joined.parties if self.named is None else self.joined.parties & self.named
        return {party: m.Ask(self.query, self.joined.deliveries.get(party)) for party in sorted(parties)}

    def check_survivors(self, survivors: frozenset[PartyId]) -> None:
        """Raise `DropoutError` if the survivors are not those that were named."""
        if self.named is not None and survivors != self.named:
            raise DropoutError(
                "parties of the interrupted round",
                expected=Phrase("the same ", list_parties(self.named)),
                got=list_parties(survivors),
                where=f"query {self.index}",
                do="Bring them back and resume; sums over different parties would give too much away",
            )
