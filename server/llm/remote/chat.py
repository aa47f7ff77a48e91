"""What a remote model's server is to us: how a prompt is sent, how its answer is read, which key opens it."""

import os
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict

from common.errors import ProviderError
from server.llm.base import Request
from server.llm.remote.retry import Clock
from server.llm.spending import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One answer of a model, read from whatever its server calls it.

    Attributes:
        text: What it wrote.
        usage: Tokens.
        loss: "refused", "filtered" or "truncated" if the server says so, else None.
    """

    text: str
    usage: Usage
    loss: str | None = None


class MalformedError(ValueError):
    """An answer that is no completion."""


class Chat(Protocol):
    """A server's protocol: how one prompt is sent, through its official SDK, and its answer read."""

    identity: str
    model: str
    max_tokens: int
    errors: tuple[type[Exception], ...]

    def client(self) -> AbstractAsyncContextManager[Any]:
        """A new client of the SDK, its own retries off."""

    async def complete(self, client: Any, system: str, user: str, request: Request) -> Completion:  # noqa: ANN401
        """Send one prompt.

        Raises:
            MalformedError: The answer is no completion. And the SDK's own errors.
        """

    async def look(self, client: Any) -> None:  # noqa: ANN401
        """Ask for the model's name alone; a server that cannot tell is let pass."""


class RemoteSettings(TypedDict, total=False):
    """What every remote model has in its YAML, see `Remote`."""

    concurrency: int
    requests_per_minute: float | None
    tokens_per_minute: float | None
    retries: int
    price: Mapping[str, Any] | None
    clock: Clock


def key_of(name: str, variable: str) -> str:
    """The key in an environment variable.

    Raises:
        ProviderError: There is none.
    """
    key = os.environ.get(variable)
    if not key:
        raise ProviderError(
            f"no key for the language model {name}",
            expected=f"the environment variable {variable}",
            got="nothing",
            do=f"export {variable}, or choose the built-in model, which needs none",
        )
    return key
