"""Claude over the Messages API, through the official SDK; one at a time, or as Message Batches at half the price.

What goes out is what `render` writes and the settings below; nothing else. The API's current version takes no sampling
temperature, so `Request.temperature` has no effect here: diversity comes from the exemplars that each prompt draws.
"""

from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import anthropic
from anthropic.types import Message, TextBlock
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

from common.validate import in_range, not_empty, positive
from server.llm.base import Provider, Request
from server.llm.remote.chat import Completion, MalformedError, RemoteSettings, key_of
from server.llm.remote.message_batches import MessageBatches
from server.llm.remote.provider import Remote
from server.llm.render import WORDING
from server.llm.spending import Spending, Usage

_MOST_TOKENS = 21_333  # above this the SDK insists on streaming: an answer could take more than ten minutes
_LOSSES = {
    "refusal": "refused",
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
}


def provider(
    *,
    name: str,
    model: str,
    max_tokens: int = 4096,
    base_url: str | None = None,
    timeout: float = 600.0,
    key_variable: str = "ANTHROPIC_API_KEY",
    prompt_caching: bool = True,
    batches: bool = False,
    poll: float = 30.0,
    folder: Path | None = None,
    spending: Spending | None = None,
    **layer: Unpack[RemoteSettings],
) -> Provider:
    """One Claude model.

    Args:
        name: How reports and candidates name it.
        model: The API's model name.
        max_tokens: Bound on one answer, all `n` texts of a request and the model's reasoning together.
        base_url: Another address that speaks the same protocol, such as a gateway of the house.
        timeout: Seconds for one answer.
        key_variable: Environment variable that holds the key.
        prompt_caching: Mark the system prompt, which all requests of a task share, for the provider's cache; it takes
            effect only above the model's least length, 1024 tokens or more.
        batches: Send each round's requests as Message Batches: half the price, up to a day's wait.
        poll: Seconds between looks at a batch.
        folder: Where batches under way are noted, so that a killed run finds them again.
        spending: The run's account.
        layer: See `Remote`.

    Raises:
        ProviderError: No key in the environment. Raised here, so that a run stops before it touches private data.
    """
    chat = Messages(
        model=model,
        max_tokens=max_tokens,
        base_url=base_url,
        timeout=timeout,
        key=key_of(name, key_variable),
        prompt_caching=prompt_caching,
    )
    one_by_one = Remote(name=name, chat=chat, spending=spending, **layer)
    if not batches:
        return one_by_one
    return MessageBatches(
        name=name, chat=chat, one_by_one=one_by_one, poll=poll, folder=folder, spending=spending, **layer
    )


class Messages:
    """See `server.llm.remote.chat.Chat`, and `provider` for the arguments."""

    errors: tuple[type[Exception], ...] = (anthropic.APIError, ValueError)

    def __init__(
        self, *, model: str, max_tokens: int, base_url: str | None, timeout: float, key: str, prompt_caching: bool
    ) -> None:
        not_empty(model=model)
        in_range(1, _MOST_TOKENS, max_tokens=max_tokens)
        positive(timeout=timeout)
        self.model, self.max_tokens = model, max_tokens
        self.identity = f"anthropic/{model}/{base_url or ''}/max_tokens={max_tokens}/wording={WORDING}"
        self._prompt_caching = prompt_caching
        # The key is passed on, so that the SDK looks for no other credential; tracing could put texts into spans.
        self._new_client = partial(
            anthropic.AsyncAnthropic,
            api_key=key,
            base_url=base_url,
            timeout=timeout,
            max_retries=0,
            open_telemetry=False,
        )

    def client(self) -> AbstractAsyncContextManager[Any]:
        """A new client."""
        return self._new_client()

    def parameters(self, system: str, user: str) -> MessageCreateParamsNonStreaming:
        """The body of one request."""
        body: MessageCreateParamsNonStreaming = {
            "model": self.model,
            "max_tokens": self.max_tokens,
            "system": system,
            "messages": [{"role": "user", "content": user}],
        }
        if self._prompt_caching:
            body["system"] = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
        return body

    async def complete(self, client: Any, system: str, user: str, request: Request) -> Completion:  # noqa: ANN401
        """Send one prompt."""
        del request
        return completion(await client.messages.create(**self.parameters(system, user)))

    def completed(self, message: object) -> Completion:
        """Read one answer of a batch."""
        return completion(message)

    async def look(self, client: Any) -> None:  # noqa: ANN401
        """Ask for the model by name; a gateway that has no such list answers with a 404 of its own kind."""
        try:
            await client.models.retrieve(self.model)
        except anthropic.NotFoundError as error:
            if error.type == "not_found_error":
                raise


def completion(message: object) -> Completion:
    """Read a message.

    Raises:
        MalformedError: It is none. The SDK validates nothing: a gateway's error page arrives as a string, a missing
            field as None.
    """
    if not isinstance(message, Message) or not isinstance(message.content, list):
        raise MalformedError
    use: Any = message.usage
    return Completion(
        text="".join(block.text for block in message.content if isinstance(block, TextBlock)),
        usage=Usage(
            input=getattr(use, "input_tokens", None) or 0,
            cached=getattr(use, "cache_read_input_tokens", None) or 0,
            kept=getattr(use, "cache_creation_input_tokens", None) or 0,
            output=getattr(use, "output_tokens", None) or 0,
        ),
        loss=_LOSSES.get(message.stop_reason or ""),
    )
