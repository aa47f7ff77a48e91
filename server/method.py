"""The interface of a method: `plan`, `start` and `step` take and return plain values and never see private data.

`plan` lists every query that can be asked, before any private data is accessed. `start` creates the first state, and
`step` runs one round. States and reports are JSON, so that a run can resume after a crash. Randomness comes from the
experiment seed and the round, so that a repeated step makes the same draws.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from common.plan.planned import PlannedQuery
from common.queries.closed_set import Spec
from server.documents.privacy import Earlier
from server.documents.rounds import RoundReport as RoundReport  # noqa: PLC0414 a name for user-defined methods
from server.domain import Candidate, Membership, PrivacyTarget, Task
from server.llm.base import Request
from server.llm.generate import Generated, Written
from server.llm.orders import Order, RequestMaker
from server.metrics.linear import LinearClassifier


class Memory(Protocol):
    """Immutable data that a method keeps from step to step in addition to its texts."""

    def to_dict(self) -> dict[str, Any]:
        """Return the memory as plain values, ready for JSON."""

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Return the memory from the values that `to_dict` returned, after a round trip through JSON."""


@dataclass(frozen=True, slots=True)
class PlainMemory:
    """Base of the memories whose fields are all plain values, as JSON has them; it has no field of its own."""

    def to_dict(self) -> dict[str, Any]:
        """Return the memory as plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Read the memory back from `to_dict`'s form, after a round trip through JSON."""
        return cls(**saved)


@dataclass(frozen=True, slots=True)
class NoMemory(PlainMemory):
    """The memory of a method that needs no memory."""


M = TypeVar("M", bound=Memory)


@dataclass(frozen=True, slots=True, kw_only=True)
class State(Generic[M]):
    """State of a run after a completed step.

    Attributes:
        round: Index of the next step, from 0.
        candidates: The synthetic texts as they would be released now.
        rounds: One report for each completed step, as in `rounds.jsonl`.
        released: Noised numbers that are part of the result, so that later runs can use them (`Reusing`). They have
            JSON's types and are keyed by the name of their file in the run folder. `server/run.py` adds their origin.
        memory: The method's memory.
    """

    round: int = 0
    candidates: tuple[Candidate, ...] = ()
    rounds: tuple[RoundReport, ...] = ()
    released: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    memory: M

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain values, ready for JSON."""
        return {
            "round": self.round,
            "candidates": [candidate.to_json() for candidate in self.candidates],
            "rounds": [report.to_json() for report in self.rounds],
            "released": dict(self.released),
            "memory": self.memory.to_dict(),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], memory: type[M]) -> "State[M]":
        """Return the state from `to_dict`'s values, after a round trip through JSON; `memory` is the memory's class."""
        return State(
            round=saved["round"],
            candidates=tuple(map(Candidate.from_json, saved["candidates"])),
            rounds=tuple(RoundReport.from_json(line) for line in saved["rounds"]),
            released=saved.get("released", {}),
            memory=memory.from_dict(saved["memory"]),
        )


class Tools(Protocol):
    """The tools that a method may use: `server/tools.py` in a real run. Only `ask` reaches private data."""

    @property
    def task(self) -> Task:
        """The public description of the data."""

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the language models."""

    @property
    def experiment_seed(self) -> int:
        """Seed for `common.rng.experiment`; never for noise."""

    def generate(self, orders: Sequence[Order], make_request: RequestMaker, *, round_number: int) -> Generated:
        """Fill orders with texts; see `server/llm/generate.py`.

        Zero-shot texts of round 0, before any `ask`, show what the same models write without the hospitals; a run is
        compared with these texts (`server/evaluation/zero_shot.py`).
        """

    def write(self, requests: Sequence[tuple[str, Request]]) -> Written:
        """Send each request to the model named with it, or to others if this model writes nothing usable.

        `Written.models` states who wrote; see `server/llm/generate.py`.
        """

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the embeddings of texts, (texts, dimensions) float32, unit norm."""

    def spec(self, name: str) -> Spec:
        """Return the planned specification of a query, given the query's name in the plan."""

    def ask(self, name: str, nth: int, **arrays: NDArray[Any]) -> NDArray[np.float64]:
        """Ask the parties a planned query, and return the noised answer.

        Args:
            name: The query's name in the plan.
            nth: Index of the planned answer, from 0.
            arrays: The query's arrays, under the names that its module in `common/queries` gives them.

        Returns:
            The noised answer in votes, records, cosines or features: (length,) float64, or (parties, length) if the
            parties' answers are not summed.
        """

    def noise(self, name: str, nth: int) -> float:
        """Return the noise's standard deviation in each entry of a sum that `ask` returned in this step.

        The deviation is public, since it follows from the planned noise and from the noise shares that survivors beyond
        the planned number have added.
        """


class Method(Protocol[M]):
    """The interface of a method, which `server/run.py` calls.

    Attributes:
        name: Name in the plan and the run folder.
        rounds: Number of steps of a run.
        texts_per_request: Number of texts that one prompt requests.
    """

    name: str
    rounds: int
    texts_per_request: int

    @property
    def memory(self) -> type[M]:
        """The class of the method's memory."""

    @property
    def modes(self) -> Mapping[str, str | None]:
        """The modes in `server.llm.base.MODES` that are used, each with the setting that avoids it, or None."""

    def plan(self, task: Task, target: PrivacyTarget, membership: Membership) -> tuple[PlannedQuery, ...]:
        """Return every query that can be asked in the worst case, before noise is assigned."""

    def max_texts(self, task: Task, models: Sequence[str]) -> int:
        """Return the largest number of texts that a run requests, for the forecast of calls and tokens."""

    def compared(self, task: Task) -> Mapping[str, int]:
        """Return, keyed by query, the number of candidates, abstracts, keywords or terms among which records choose.

        If the number differs between answers, the largest is returned.
        """

    def start(self, tools: Tools) -> State[M]:
        """Return the state before the first round."""

    def step(self, state: State[M], tools: Tools) -> State[M]:
        """Run one round; the last report of the new state describes it."""


@runtime_checkable
class Reusing(Protocol):
    """A method that can use the released numbers of an earlier run instead of asking any party."""

    def earlier(self) -> Earlier | None:
        """Return the earlier run; None if the method asks the parties itself."""


@runtime_checkable
class SeveralLabels(Protocol):
    """The kind of method that tasks with several labels per text require (`server/operators/label_sets.py`)."""

    @property
    def label_sets_share(self) -> float:
        """Fraction of epsilon for the query about which labels occur together, in (0, 1)."""


@runtime_checkable
class Labelling(Protocol):
    """A method whose released numbers form a classifier for any text. Using the classifier costs no privacy."""

    @property
    def transfer(self) -> int:
        """Maximum number of public texts for which the run releases the classifier's probabilities."""

    def classifier(self, state: State[Any]) -> LinearClassifier:
        """Return the classifier after the last step, with probabilities as soft as those of the released texts."""

    def training_labels(self, state: State[Any], vectors: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return (n, C) label probabilities as training targets for texts with these (n, dim) vectors."""


@runtime_checkable
class Resizable(Protocol):
    """A method that can run a rehearsal at a fraction of its size. For any other method, only `samples` is scaled."""

    def resized(self, share: float, task: Task) -> Self:
        """Return the method with this fraction of every kind of text, and without slow steps that use no model."""
