"""Claude through the Messages API and the official SDK, with single requests or, at half the price, Message Batches.

Only what `render` writes and the settings below are sent. The current version of the API takes no sampling temperature,
so `Request.temperature` has no effect here: diversity comes from the exemplars that are sampled for each prompt.
"""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import anthropic
from anthropic.types import Message, TextBlock
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

from common.validate import in_range
from server.llm.base import Provider, Request
from server.llm.reasoning import text_of
from server.llm.remote.chat import ChatReply, MalformedError, RemoteSettings, refuse_reported_error
from server.llm.remote.message_batches import MessageBatches
from server.llm.remote.provider import Remote
from server.llm.render import Prompts, our_prompts
from server.llm.spending import Spending, Usage

_MOST_TOKENS = 21_333  # above this the SDK insists on streaming: an answer could take more than ten minutes
_LOSSES = {
    "refusal": "refused",
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
}


def provider(
    *,
    key_variable: str | None = "ANTHROPIC_API_KEY",
    prompt_caching: bool = True,
    batches: bool = False,
    poll: float = 30.0,
    folder: Path | None = None,
    spending: Spending | None = None,
    prompts: Prompts | None = None,
    **shared: Any,
) -> Provider:
    """Build one Claude model from the flat settings in its YAML.

    These are the fields of `RemoteSettings` and `Messages`; `spending` is the account of the run. With `batches`, each
    round's requests are sent as Message Batches, at half the price but with a wait of up to a day: `poll` is the number
    of seconds between two requests for a batch's status, and a `folder` keeps notes on batches in progress, with which
    a run that was killed can collect their results.

    Raises:
        ConfigError: A setting is out of range.
        ProviderError: The environment has no key.
    """
    settings = RemoteSettings(key_variable=key_variable, prompts=prompts or our_prompts(), **shared)
    chat = Messages(settings=settings, prompt_caching=prompt_caching)
    if batches:
        return MessageBatches(chat=chat, poll=poll, folder=folder, spending=spending)
    return Remote(chat=chat, spending=spending)


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """The protocol of the Messages API; see `server.llm.remote.chat.Chat`.

    Attributes:
        prompt_caching: Whether to mark the system prompt, which all requests of a task share, for the provider's cache.
            The mark takes effect only above a minimum length that depends on the model, 1024 tokens or more.
    """

    errors: ClassVar[tuple[type[Exception], ...]] = (anthropic.APIError, ValueError)
    endpoint: ClassVar[str] = "/v1/messages"

    settings: RemoteSettings
    prompt_caching: bool

    def __post_init__(self) -> None:
        """Raise `ConfigError` for an answer length that the SDK would reject later."""
        in_range(1, _MOST_TOKENS, max_tokens=self.settings.max_tokens)

    @property
    def identity(self) -> str:
        """Everything that an answer depends on in addition to the prompt."""
        at = f"{self.settings.model}/{self.settings.base_url or ''}"
        return f"anthropic/{at}/max_tokens={self.settings.max_tokens}/wording={self.settings.prompts.identity}"

    def client(self) -> AbstractAsyncContextManager[Any]:
        """Return a client with an explicit key, so that the SDK does not look for one, and without tracing of texts."""
        settings = self.settings
        return anthropic.AsyncAnthropic(
            api_key=settings.key(),
            base_url=settings.base_url,
            timeout=settings.timeout,
            max_retries=0,
            open_telemetry=False,
        )

    def parameters(self, system: str, user: str) -> MessageCreateParamsNonStreaming:
        """Return the body of the request for one prompt."""
        body: MessageCreateParamsNonStreaming = {
            "model": self.settings.model,
            "max_tokens": self.settings.max_tokens,
            "messages": [{"role": "user", "content": user}],
        }
        if system and self.prompt_caching:
            body["system"] = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
        elif system:
            body["system"] = system
        return body

    async def complete(
        self, client: Any, system: str, user: str, request: Request, *, max_tokens: int | None = None
    ) -> ChatReply:
        """Send one prompt, and return the model's completion."""
        del request
        body = self.parameters(system, user)
        body["max_tokens"] = max_tokens or body["max_tokens"]
        answer = await client.messages.create(**body)
        refuse_reported_error(answer)
        return self.read(answer)

    def model_is_unknown(self, error: Any) -> bool:
        """Return whether a 404 means an unknown model. A gateway that lists no models sends another type of error."""
        return bool(error.type == "not_found_error")

    @staticmethod
    def read(message: object) -> ChatReply:
        """Convert a message of the API to a completion. Only its blocks of text count, not those of reasoning.

        Raises:
            MalformedError: The answer is not a message. The SDK validates nothing: a gateway's error page arrives as a
                string, a missing field as None.
        """
        if not isinstance(message, Message) or not isinstance(message.content, list):
            raise MalformedError
        use: Any = message.usage
        return ChatReply(
            text="".join(text_of(block.text) or "" for block in message.content if isinstance(block, TextBlock)),
            usage=Usage(
                input=getattr(use, "input_tokens", None) or 0,
                cached=getattr(use, "cache_read_input_tokens", None) or 0,
                kept=getattr(use, "cache_creation_input_tokens", None) or 0,
                output=getattr(use, "output_tokens", None) or 0,
            ),
            loss=_LOSSES.get(str(message.stop_reason)),
        )
