"""Engines, which compute the tokens that a language model writes after those of a prompt."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

GREEDY = 1e-3
"""Temperature below which the likeliest token is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One prompt, and settings of the sampling of its continuations.

    Attributes:
        ids: Token ids of the prompt.
        seed: Seed of the draws; below 2^63.
        count: Number of continuations.
        max_new_tokens: Largest number of tokens of each continuation.
        temperature: Temperature of the sampling; below `GREEDY` the likeliest token is taken.
        top_p: Sample from the likeliest tokens with this total probability.
        stop: Text that ends a continuation, as the model's own end does; empty for none.
    """

    ids: tuple[int, ...]
    seed: int
    count: int = 1
    max_new_tokens: int
    temperature: float
    top_p: float = 1.0
    stop: str = ""


Continuations = list[list[int]]
"""Token ids of each continuation of one prompt, without the model's own end."""

Sampled = Callable[[int, Continuations], None]
"""Called with a job's index and its continuations as soon as these are complete."""


class Engine(Protocol):
    """A loaded model that continues prompts."""

    def sample(self, jobs: Sequence[Job], done: Sampled) -> None:
        """Sample all continuations of all jobs, each determined by its job alone up to rounding.

        Args:
            jobs: Any number of prompts.
            done: Called once for each job, in any order, in the calling thread.

        Raises:
            ProviderError: The jobs do not fit into memory.
        """
