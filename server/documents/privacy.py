"""`privacy.json`: a run's guarantee, its assumptions and limits, and how much of the plan's budget was spent.

`server/planning/guarantee_facts.py` creates the document from the plan and the ledger; `server/run_folder.py` writes it
after each step. An epsilon is infinite if nothing bounds the loss. Scales and sensitivities are in votes, records,
cosines, features or radii, unless they are stated to be in grid units.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from common.plan.guesses import Guesses
from common.plan.words import few_corrupt
from server.documents import codec
from server.documents.codec import ABSENT, OTHERS
from server.documents.files import Document

SECURE = "secure, semi-honest coordinator"
MALICIOUS = "secure, malicious coordinator"
NO_AGGREGATION = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjacency(Document):
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
class Subsampling(Document):
    """A random subset of the records that takes part in a query.

    Attributes:
        rate: Probability that a unit is in the subset.
        redrawn: Whether a new subset is drawn for each answer.
    """

    rate: float
    redrawn: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice(Document):
    """A noised choice among texts that are written from a record itself.

    Attributes:
        claimed_epsilon: Epsilon according to the method's paper.
        epsilon_among_public_candidates: Epsilon if the candidates were the same for every record.
    """

    claimed_epsilon: float
    epsilon_among_public_candidates: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedQuery(Document):
    """A planned query.

    Attributes:
        name: The query's name in the plan.
        times: Number of answers charged to the budget.
        kind: The query's kind, from the closed set of queries.
        parameters: Parameters of the query's specification, keyed by their names in the query's file in
            `common/queries`.
        mechanism: The mechanism that adds noise to the answers.
        summed: Whether the answers are summed over the parties.
        share_of_epsilon: Fraction of epsilon that the calibration assigned to the query.
        epsilon_alone: Epsilon of this query's answers alone.
        subsampling: The random subset of the records that takes part; None if all do.
        grid: Number of grid points per unit of the answer.
        sensitivity_l1: Largest change of an answer caused by one unit, in the l1 norm.
        sensitivity_l2: Largest change of an answer caused by one unit, in the Euclidean norm.
        scale: Scale of the noise, in the answer's unit.
        scale_grid: Scale of the noise, in grid units.
        density_error_times_records: Error that noise adds to a sketched density, times the number of records; one value
            for the planned mechanism and one for each of two alternatives.
        choice: Epsilon of a noised choice, both according to the paper and among public candidates.
        noise_multiplier: Noise in one step of DP-SGD, as a multiple of the sensitivity.
    """

    name: str
    times: int = 1
    kind: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict, metadata=OTHERS)
    mechanism: str
    summed: bool
    share_of_epsilon: float = 1.0
    epsilon_alone: float
    subsampling: Subsampling | None = None
    grid: int
    sensitivity_l1: float
    sensitivity_l2: float
    scale: float
    scale_grid: float = 0.0
    density_error_times_records: Mapping[str, float] | None = field(default=None, metadata=ABSENT)
    choice: Choice | None = field(default=None, metadata=ABSENT)
    noise_multiplier: float | None = field(default=None, metadata=ABSENT)

    @property
    def candidates(self) -> int:
        """Number of texts from which the query chooses, for a query that makes a choice."""
        return int(self.parameters["candidates"])

    @property
    def steps(self) -> int:
        """Number of training steps, for a query that trains a model."""
        return int(self.parameters["steps"])

    @property
    def directions(self) -> tuple[str, ...]:
        """Directions of votes, all with equally many entries in the answer; empty for a query that is not for votes."""
        if self.kind != "votes":
            return ()
        return ("nearest", "furthest") if self.parameters.get("furthest") else ("nearest",)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstColluders(Document):
    """Epsilon of one party's answers against the coordinator and some other parties.

    Attributes:
        colluders: Number of the other parties.
        epsilon: Epsilon against these parties and the coordinator.
    """

    colluders: int
    epsilon: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent(Document):
    """How much of the plan's budget was spent.

    Attributes:
        epsilon: Epsilon of the queries asked.
        queries_asked: Number of queries asked.
        queries_planned: Number of answers in the plan; several attempts at an answer count as one.
    """

    epsilon: float
    queries_asked: int
    queries_planned: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin(Document):
    """The run that asked the parties, if another run reuses its answers.

    Attributes:
        run: The run's ID.
        plan_digest: Hex digest of its plan.
        encoder: Digest of its encoder.
    """

    run: str
    plan_digest: str
    encoder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Privacy(Document):
    """The `privacy.json` document.

    Attributes:
        statement: The guarantee in words, as paragraphs.
        epsilon: The requested epsilon.
        delta: δ, a public constant; 0 if no queries are asked.
        planned_epsilon: Epsilon of the planned noise; above `epsilon` if the noise follows an incorrect formula from a
            paper.
        unproven: Names of the queries that have no privacy proof.
        proven_epsilon: Epsilon of all queries that have a privacy proof.
        pure_epsilon: Epsilon without a delta; None if it is infinite.
        released_epsilon: Epsilon of the released texts against a reader, while at most `corrupt_for_readers` parties
            leave out or tell their noise. Files of earlier versions, which have no `released_guesses`, counted the
            noise of all parties here.
        released_guesses: What a reader can find out under the same condition; None in files of earlier versions.
        if_all_add_noise_epsilon: Epsilon of the released texts if every party adds its noise and tells it to nobody; no
            guarantee. None in files of earlier versions.
        party_epsilon: Epsilon of a party's answers against the coordinator and the colluders.
        party_guesses: What the coordinator and the colluders can find out; None in files of earlier versions.
        calibration: Kind of calibration: "tight" or "paper".
        adjacency: The change in the records that the guarantee hides.
        mechanism: Names of the mechanisms that add noise.
        queries: The planned queries.
        max_attempts: Number of attempts at an answer that are charged to the budget.
        parties: L, the number of parties.
        max_dropouts: Maximum number of parties that may be missing from a sum.
        assumed_survivors: Minimum number of parties in a sum.
        assumed_colluders: Number of other parties that are assumed to reveal their noise to the coordinator.
        noise_parties: Number of parties whose noise shares add up to the full noise.
        threshold: Minimum number of parties that can remove a mask together.
        aggregation: "none", or secure against a semi-honest or a malicious coordinator.
        neighbours: Number of parties with which each party shares masks.
        corrupt: Number of parties that may deviate from the protocol.
        largest_coalition: Maximum number of colluding parties against which the masks remain secure.
        against_colluders: Epsilon for each number of colluders.
        spent: How much of the plan's budget was spent.
        plan_digest: Hex digest of the plan.
        simulation: Whether the parties were simulated.
        labels_from_records: Whether the labels were taken from private records.
        earlier: The run that asked the parties, if this run uses its answers.
        not_covered: Limits of the guarantee, each item "Heading: explanation.".
    """

    FILE: ClassVar[str] = "privacy.json"

    statement: str = ""
    epsilon: float
    delta: float
    planned_epsilon: float
    unproven: tuple[str, ...] = ()
    proven_epsilon: float = math.inf
    pure_epsilon: float | None = None
    released_epsilon: float
    released_guesses: Guesses | None = None
    if_all_add_noise_epsilon: float | None = None
    party_epsilon: float
    party_guesses: Guesses | None = None
    calibration: str = "tight"
    adjacency: Adjacency
    mechanism: str
    queries: tuple[StatedQuery, ...]
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
    spent: Spent
    plan_digest: str = ""
    simulation: bool
    labels_from_records: bool = False
    earlier: Origin | None = field(default=None, metadata=ABSENT)
    not_covered: tuple[str, ...] = ()

    def before_asking(self, signals: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the document as JSON before any epsilon is spent, with the expected signal of each query."""
        facts = self.to_json()
        del facts["spent"]
        # Queries of an earlier run, whose answers are used again, are none of this plan.
        for query, signal in zip(facts["queries"], signals, strict=False):
            query["signal"] = codec.strict(signal)
        return facts

    @property
    def noisy(self) -> bool:
        """Whether the requested epsilon is finite, so that noise is added to all answers that can have it."""
        return math.isfinite(self.epsilon)

    @property
    def corrupt_for_readers(self) -> int:
        """Number of parties whose noise does not count against a reader (`common.plan.guarantee`)."""
        return self.corrupt if self.malicious else self.assumed_colluders

    @property
    def condition(self) -> str:
        """The condition under which the noise of a sum hides a record, as a clause; empty if no answer is summed."""
        summed = any(query.summed for query in self.queries)
        return few_corrupt(self.corrupt_for_readers, self.parties) if summed else ""

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
    def masked(self) -> bool:
        """Whether secure aggregation is used."""
        return self.aggregation != NO_AGGREGATION

    @property
    def malicious(self) -> bool:
        """Whether the masks remain secure against a coordinator that deviates from the protocol."""
        return self.aggregation == MALICIOUS

    @property
    def labels_per_record(self) -> int:
        """Maximum number of a record's labels under which the record counts."""
        return max((query.parameters.get("labels_per_record", 1) for query in self.queries), default=1)

    @property
    def by_user(self) -> bool:
        """Whether all records of a user are protected together."""
        return self.adjacency.unit == "user"

    @property
    def steering(self) -> tuple[StatedQuery, ...]:
        """The queries whose answers the texts depend on: all but the count of correct answers, asked after them."""
        return tuple(query for query in self.queries if query.kind != "correct count")

    @property
    def written_from_records(self) -> bool:
        """Whether hospitals send texts of models that read records: a query for such texts has a `longest`."""
        return any("longest" in query.parameters for query in self.queries)

    @property
    def summed(self) -> bool:
        """Whether secure aggregation sums any answers together with the parties' noise shares."""
        return self.masked and any(query.summed for query in self.queries)

    @property
    def unsummed(self) -> str:
        """Names of the queries for which the coordinator sees each party's own answer."""
        return ", ".join(query.name for query in self.queries if not query.summed)
