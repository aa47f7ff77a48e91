"""The facts about a plan and its guarantee, computed once; each screen and document of both sides reads them.

    the sheet of a plan, in a hospital's terminal and on its page     client/approval
    `privacy.json`, the statement of a run and its report             server/documents/privacy.py, which adds fields

Epsilons are infinite if nothing bounds the loss, and hold at the plan's delta. `common/plan/guarantee.py` computes
them, and says what each of them means and which noise it counts.
"""

import math
from dataclasses import dataclass
from typing import Protocol

from common.page.words import ENGLISH
from common.plan.guesses import Guesses
from common.plan.words import few_corrupt

SECURE = "secure, semi-honest coordinator"
MALICIOUS = "secure, malicious coordinator"
NO_AGGREGATION = "none"


class AskedQuery(Protocol):
    """What the facts need of a query: `PlannedQuery` has it, and so has the query of a `privacy.json`."""

    @property
    def mechanism(self) -> str:
        """The mechanism that adds noise to the answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjacency:
    """The pairs of data sets that the guarantee makes hard to distinguish.

    Attributes:
        relation: Difference between the two data sets: "add or remove".
        unit: "sample" or "user": the unit of which one data set has one more than the other.
        max_records: Maximum number of records counted per unit.
    """

    relation: str = "add or remove"
    unit: str
    max_records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstColluders:
    """Epsilon of one party's answers against the coordinator and some other parties.

    Attributes:
        colluders: Number of the other parties.
        epsilon: Epsilon against these parties and the coordinator.
    """

    colluders: int
    epsilon: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanGuarantee:
    """What a plan guarantees, against whom, and what the guarantee assumes.

    Attributes:
        epsilon: The requested epsilon.
        delta: δ, a public constant; 0 if no queries are asked.
        planned_epsilon: Epsilon of the planned noise; above `epsilon` if the noise follows an incorrect formula from a
            paper.
        unproven: Names of the queries that have no privacy proof.
        released_epsilon: Epsilon of the released texts against a reader, while at most `corrupt_for_readers` parties
            leave out or tell their noise. Files of earlier versions, which have no `released_guesses`, counted the
            noise of all parties here.
        released_guesses: What a reader can find out under the same condition; None in files of earlier versions.
        if_all_add_noise_epsilon: Epsilon of the released texts if every party adds its noise and tells it to nobody; no
            guarantee. None in files of earlier versions.
        party_epsilon: Epsilon of a party's answers against the coordinator and the colluders.
        party_guesses: What the coordinator and the colluders can find out; None in files of earlier versions.
        adjacency: The change in the records that the guarantee hides.
        queries: The planned queries.
        max_attempts: Number of attempts at an answer that are charged to the budget.
        parties: L, the number of parties.
        max_dropouts: Maximum number of parties that may be missing from a sum.
        assumed_survivors: Minimum number of parties in a sum.
        assumed_colluders: Number of other parties that the plan assumes to reveal their noise to the coordinator.
        noise_parties: Number of parties whose noise shares add up to the full noise.
        threshold: Minimum number of parties that can remove a mask together.
        aggregation: "none", or secure against a semi-honest or a malicious coordinator.
        neighbours: Number of parties with which each party shares masks.
        corrupt: Number of parties that may deviate from the protocol.
        largest_coalition: Maximum number of colluding parties against which the masks remain secure.
        against_colluders: Epsilon for some numbers of colluders.
    """

    epsilon: float
    delta: float
    planned_epsilon: float
    unproven: tuple[str, ...] = ()
    released_epsilon: float
    released_guesses: Guesses | None = None
    if_all_add_noise_epsilon: float | None = None
    party_epsilon: float
    party_guesses: Guesses | None = None
    adjacency: Adjacency
    queries: tuple[AskedQuery, ...]
    max_attempts: int = 1
    parties: int
    max_dropouts: int
    assumed_survivors: int
    assumed_colluders: int
    noise_parties: int
    threshold: int = 0
    aggregation: str
    neighbours: int = 0
    corrupt: int = 0
    largest_coalition: int
    against_colluders: tuple[AgainstColluders, ...]

    @property
    def noisy(self) -> bool:
        """Whether the requested epsilon is finite, so that noise is added to all answers that can have it."""
        return math.isfinite(self.epsilon)

    @property
    def masked(self) -> bool:
        """Whether secure aggregation is used."""
        return self.aggregation != NO_AGGREGATION

    @property
    def malicious(self) -> bool:
        """Whether the masks remain secure against a coordinator that deviates from the protocol."""
        return self.aggregation == MALICIOUS

    @property
    def by_user(self) -> bool:
        """Whether all records of a user are protected together."""
        return self.adjacency.unit == "user"

    @property
    def trains(self) -> bool:
        """Whether parties train models."""
        return any(query.mechanism == "dp-sgd" for query in self.queries)

    @property
    def corrupt_for_readers(self) -> int:
        """Number of parties whose noise does not count against a reader (`common.plan.guarantee`)."""
        return self.corrupt if self.malicious else self.assumed_colluders

    @property
    def lifting(self) -> int | None:
        """The smallest number of other parties that could lift a party's masks together with the coordinator.

        None if no number of them could, or if there are no masks.
        """
        needed = self.largest_coalition + 1
        return needed if self.masked and needed < self.parties else None

    @property
    def readers_epsilon(self) -> float:
        """Epsilon against a reader, also in files of earlier versions, which counted the noise of corrupt parties."""
        if self.released_guesses:
            return self.released_epsilon
        few = self.corrupt_for_readers
        known = (row.epsilon for row in self.against_colluders if row.colluders == few and self.masked)
        return max(self.released_epsilon, self.planned_epsilon, *known)

    @property
    def readers_guesses(self) -> Guesses:
        """What a reader can find out; from epsilon and delta alone if the file does not say it."""
        return self.released_guesses or Guesses.of_pair(self.readers_epsilon, self.delta)

    @property
    def insiders_guesses(self) -> Guesses:
        """What the coordinator and the colluders can find out; from epsilon and delta alone if the file lacks it."""
        worst = max(self.epsilon, self.planned_epsilon, self.party_epsilon)
        return self.party_guesses or Guesses.of_pair(worst, self.delta)

    def readers_condition(self, language: str = ENGLISH) -> str:
        """Return the condition of a figure for readers, which counts the noise of all parties but a few, as a clause.

        Args:
            language: Code of the reader's language.
        """
        return few_corrupt(self.corrupt_for_readers, self.parties, language)
