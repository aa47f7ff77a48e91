"""A method is plan, start, step: three functions over plain values, and nothing private in any of them.

`plan` names every query that can be asked, before anything private is touched. `start` makes the first state, `step`
one round. State and report are JSON, so that a run goes on after a crash; randomness comes from the experiment seed
and the round, so that a repeated step draws the same.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from common.plan.planned import PlannedQuery
from server.domain import Candidate, Task
from server.llm.generate import Generated, Written


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """All that a method may use. `ask` is the only door to private data.

    Attributes:
        task: What is public about the data.
        models: Names of the language models.
        experiment_seed: For `common.rng.experiment`; never for noise.
        generate: Orders to texts; see `server/llm/generate.py`.
        write: Requests, each with its model, to the texts of each; see `server/llm/generate.py`.
        embed: Texts to (texts, dimensions) float32, unit norm.
        ask: `ask(name, nth, **arrays)`: a query's name in the plan, which of its answers (from 0), and the arrays of
            its asked form (`common/queries/arrays.py`). Gives the noised answer in votes, records, cosines or features:
            (length,) float64, or (parties, length) if it is not summed.
    """

    task: Task
    models: tuple[str, ...]
    experiment_seed: int
    generate: Callable[..., Generated]
    write: Callable[..., Written]
    embed: Callable[[Sequence[str]], NDArray[np.float32]]
    ask: Callable[..., NDArray[np.float64]]


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
