"""A method is plan, start, step: three functions over plain values, and nothing private in any of them.

`plan` names every query that can be asked, before anything private is touched. `start` makes the first state, `step`
one round. State and report are JSON, so that a run goes on after a crash; randomness comes from the experiment seed
and the round, so that a repeated step draws the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from common.plan.planned import PlannedQuery
from common.queries.closed_set import Spec
from server.domain import Candidate, Task
from server.llm.base import Request
from server.llm.generate import Generated, Written
from server.llm.orders import Order, RequestMaker


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where a run stands after a whole step.

    Attributes:
        round: The next step.
        candidates: The synthetic texts as they would be released now.
        rounds: One report for each step done, as `rounds.jsonl` has it.
        memory: What the method remembers from step to step besides, in JSON's types.
    """

    round: int = 0
    candidates: tuple[Candidate, ...] = ()
    rounds: tuple[dict[str, Any], ...] = ()
    memory: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> "State":
        """The inverse of `to_dict` after a trip through JSON."""
        return cls(
            round=saved["round"],
            candidates=tuple(Candidate(**candidate) for candidate in saved["candidates"]),
            rounds=tuple(saved["rounds"]),
            memory=saved["memory"],
        )


class Tools(Protocol):
    """All that a method may use: `server/tools.py` in a real run. `ask` is the only door to private data."""

    @property
    def task(self) -> Task:
        """What is public about the data."""

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the language models."""

    @property
    def experiment_seed(self) -> int:
        """For `common.rng.experiment`; never for noise."""

    def generate(self, orders: Sequence[Order], make_request: RequestMaker, *, round_number: int) -> Generated:
        """Fill orders with texts; see `server/llm/generate.py`."""

    def write(self, requests: Sequence[tuple[str, Request]]) -> Written:
        """Have each request answered by the model that is named with it; see `server/llm/generate.py`."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts: (texts, dimensions) float32, unit norm."""

    def spec(self, name: str) -> Spec:
        """The specification of a query as it was planned, by the query's name in the plan."""

    def ask(self, name: str, nth: int, **arrays: NDArray[Any]) -> NDArray[np.float64]:
        """Ask the parties a planned query.

        Args:
            name: The query's name in the plan.
            nth: Which of its planned answers, from 0.
            arrays: The arrays of the query's asked form (`common/queries/arrays.py`).

        Returns:
            The noised answer in votes, records, cosines or features: (length,) float64, or (parties, length) if the
            parties' answers are not summed.
        """


class Method(Protocol):
    """What `server/run.py` drives."""

    name: str
    rounds: int
    texts_per_request: int

    def plan(self, task: Task, max_records: int) -> tuple[PlannedQuery, ...]:
        """Every query that can be asked, at worst, without noise yet; `max_records` of one privacy unit."""

    def orders(self, task: Task, models: Sequence[str]) -> int:
        """How many texts a run asks for at most, for the forecast of calls and tokens."""

    def start(self, tools: Tools) -> State:
        """The state before the first round."""

    def step(self, state: State, tools: Tools) -> State:
        """One round; the new state's last report says what happened."""
