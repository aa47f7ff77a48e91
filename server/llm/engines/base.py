"""Engines, which compute a language model's continuations of prompts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

GREEDY = 1e-3
"""Temperature below which the most probable token is always chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One prompt, with the settings for sampling its continuations.

    Attributes:
        ids: Token ids of the prompt.
        seed: Seed of the draws; below 2^63.
        count: Number of continuations.
        max_new_tokens: Maximum number of tokens of each continuation.
        temperature: Temperature of the sampling; below `GREEDY` the most probable token is chosen.
        top_p: Total probability of the most probable tokens, from which each token is sampled.
        stop: Text that ends a continuation, in addition to the model's end token; empty for none.
    """

    ids: tuple[int, ...]
    seed: int
    count: int = 1
    max_new_tokens: int
    temperature: float
    top_p: float = 1.0
    stop: str = ""


Continuations = list[list[int]]
"""Token ids of each continuation of one prompt, without the model's end token."""

Sampled = Callable[[int, Continuations], None]
"""Called with a job's index and its continuations as soon as these are complete."""


class Engine(Protocol):
    """A loaded model that continues prompts."""

    def sample(self, jobs: Sequence[Job], done: Sampled) -> None:
        """Sample all continuations of all jobs; apart from rounding, each depends on its job alone.

        Args:
            jobs: Any number of prompts.
            done: Called once for each job, in any order, in the calling thread.

        Raises:
            ProviderError: The jobs do not fit into memory.
        """
