"""`privacy.json`: a run's guarantee, its assumptions and limits, and how much of the plan's budget was spent.

`server/planning/guarantee_facts.py` creates the document from the plan and the ledger; `server/run_folder.py` writes it
after each step. An epsilon is infinite if nothing bounds the loss. Scales and sensitivities are in votes, records,
cosines, features or radii, unless they are stated to be in grid units.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from common.plan.facts import PlanGuarantee
from server.documents import codec
from server.documents.codec import ABSENT, OTHERS
from server.documents.files import Document


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
    def directions(self) -> tuple[str, ...]:
        """Directions of votes, all with equally many entries in the answer; empty for a query that is not for votes."""
        if self.kind != "votes":
            return ()
        return ("nearest", "furthest") if self.parameters.get("furthest") else ("nearest",)


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
class Privacy(PlanGuarantee, Document):
    """The `privacy.json` document: the facts about the plan, and what one run made of them.

    Attributes:
        statement: The guarantee in words, as paragraphs.
        queries: The planned queries.
        proven_epsilon: Epsilon of all queries that have a privacy proof.
        pure_epsilon: Epsilon without a delta; None if it is infinite.
        calibration: Kind of calibration: "tight" or "paper".
        mechanism: Names of the mechanisms that add noise.
        spent: How much of the plan's budget was spent.
        plan_digest: Hex digest of the plan.
        simulation: Whether the parties were simulated.
        labels_from_records: Whether the labels were taken from private records.
        earlier: The run that asked the parties, if this run uses its answers.
        not_covered: Limits of the guarantee, each item "Heading: explanation.".
    """

    FILE: ClassVar[str] = "privacy.json"

    statement: str = ""
    queries: tuple[StatedQuery, ...]
    proven_epsilon: float = math.inf
    pure_epsilon: float | None = None
    calibration: str = "tight"
    mechanism: str
    spent: Spent
    plan_digest: str = ""
    simulation: bool
    labels_from_records: bool = False
    earlier: Origin | None = field(default=None, metadata=ABSENT)
    not_covered: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the document as JSON, beginning with the statement, for whoever opens the file."""
        return {"statement": self.statement, **codec.to_json(self)}

    def before_asking(self, signals: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the document as JSON before any epsilon is spent, with the expected signal of each query."""
        facts = self.to_json()
        del facts["spent"]
        # Queries of an earlier run, whose answers are used again, are none of this plan.
        for query, signal in zip(facts["queries"], signals, strict=False):
            query["signal"] = codec.strict(signal)
        return facts

    @property
    def condition(self) -> str:
        """The condition under which the noise of a sum hides a record, as a clause; empty if no answer is summed."""
        return self.readers_condition() if any(query.summed for query in self.queries) else ""

    @property
    def labels_per_record(self) -> int:
        """Maximum number of a record's labels under which the record counts."""
        return max((query.parameters.get("labels_per_record", 1) for query in self.queries), default=1)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier(Origin):
    """A finished run whose released numbers are used by another run to make texts without asking any party.

    Attributes:
        privacy: The run's `privacy.json`: the guarantee of the released numbers also covers all later uses of these
            numbers.
    """

    privacy: Privacy

    @property
    def epsilon(self) -> float:
        """Epsilon of the earlier run's guarantee."""
        return self.privacy.epsilon
