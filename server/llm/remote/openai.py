"""Chat completions through OpenAI's official SDK: OpenAI, Azure, and other servers with this protocol at a `base_url`.

vLLM, Ollama, llama.cpp and transformers serve this protocol, without a key. Only what `render` writes and the settings
below are sent.
"""

import logging
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import openai
from openai.types.chat import ChatCompletion

from common.validate import in_range, one_of, positive
from server.llm.base import Provider, Request
from server.llm.reasoning import text_of
from server.llm.remote.chat import ChatReply, MalformedError, RemoteSettings, refuse_reported_error
from server.llm.remote.provider import Remote
from server.llm.render import Prompts, our_prompts
from server.llm.spending import Spending, Usage

log = logging.getLogger("caucus.llm")

_HIGHEST_TEMPERATURE = 2.0
_LOSSES = {"length": "truncated", "content_filter": "filtered"}
_SEEDS = 2**31  # some servers read 32 bits


def provider(
    *,
    key_variable: str | None = "OPENAI_API_KEY",
    length_field: str = "max_completion_tokens",
    temperature: bool = True,
    max_temperature: float = 2.0,
    top_p: float | None = None,
    seed: bool = False,
    system_role: bool = True,
    spending: Spending | None = None,
    prompts: Prompts | None = None,
    **shared: Any,
) -> Provider:
    """Build one model that is reached through chat completions, from the flat settings in its YAML.

    These are the fields of `RemoteSettings` and `ChatCompletions`; `spending` is the account of the run.

    Raises:
        ConfigError: A setting is out of range.
        ProviderError: The environment has no key.
    """
    settings = RemoteSettings(key_variable=key_variable, prompts=prompts or our_prompts(), **shared)
    chat = ChatCompletions(
        settings=settings,
        length_field=length_field,
        temperature=temperature,
        max_temperature=max_temperature,
        top_p=top_p,
        seed=seed,
        system_role=system_role,
    )
    return Remote(chat=chat, spending=spending)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCompletions:
    """The protocol of chat completions; see `server.llm.remote.chat.Chat`.

    Attributes:
        length_field: "max_completion_tokens", or "max_tokens" for older servers.
        temperature: Whether to send `Request.temperature`; reasoning models reject it.
        max_temperature: Upper bound of the temperature that is sent, in [0, 2]: small models write no words above 1.
        top_p: Total probability of the likeliest tokens that are sampled from, in (0, 1]; None sends none.
        seed: Whether to send a seed, for servers that use it for sampling.
        system_role: Whether the system part of a prompt is a message of its own; false puts it before the user's, for
            models that know no such role.
    """

    errors: ClassVar[tuple[type[Exception], ...]] = (openai.APIError, ValueError)
    endpoint: ClassVar[str] = "/chat/completions"

    settings: RemoteSettings
    length_field: str
    temperature: bool
    seed: bool
    max_temperature: float = 2.0
    top_p: float | None = None
    system_role: bool = True
    _lowered: set[float] = field(default_factory=set, init=False, repr=False)

    def __post_init__(self) -> None:
        """Raise `ConfigError` for an unknown name of the length field, or a number out of bounds."""
        in_range(0, _HIGHEST_TEMPERATURE, max_temperature=self.max_temperature)
        if self.top_p is not None:
            positive(top_p=self.top_p)
            in_range(0, 1, top_p=self.top_p)
        one_of("length_field", self.length_field, among=("max_completion_tokens", "max_tokens"))

    @property
    def identity(self) -> str:
        """Everything that an answer depends on in addition to the prompt."""
        at = f"{self.settings.model}/{self.settings.base_url or ''}"
        sent = f"max_tokens={self.settings.max_tokens}/temperature={self.temperature}/seed={self.seed}"
        # Values that send what was sent before there were these settings leave the identity, and caches, as they were.
        sent += f"/max_temperature={self.max_temperature:g}" * (self.max_temperature < _HIGHEST_TEMPERATURE)
        sent += "" if self.top_p is None else f"/top_p={self.top_p:g}"
        sent += "/system_role=False" * (not self.system_role)
        return f"openai/{at}/{sent}/wording={self.settings.prompts.identity}"

    def client(self) -> AbstractAsyncContextManager[Any]:
        """Return a new client of the SDK."""
        settings = self.settings
        return openai.AsyncOpenAI(
            api_key=settings.key(), base_url=settings.base_url, timeout=settings.timeout, max_retries=0
        )

    async def complete(
        self, client: Any, system: str, user: str, request: Request, *, max_tokens: int | None = None
    ) -> ChatReply:
        """Send one prompt, and return the model's completion. Servers cache common prefixes of prompts themselves."""
        turns = [("system", system), ("user", user)] if system else [("user", user)]
        if not self.system_role:
            turns = [("user", "\n\n".join(part for _, part in turns))]
        body: dict[str, Any] = {
            "model": self.settings.model,
            "messages": [{"role": role, "content": content} for role, content in turns],
            self.length_field: max_tokens or self.settings.max_tokens,
        }
        if self.temperature:
            body["temperature"] = self._temperature(request.temperature)
        if self.top_p is not None:
            body["top_p"] = self.top_p
        if self.seed:
            body["seed"] = request.seed % _SEEDS
        answer = await client.chat.completions.create(**body)
        refuse_reported_error(answer)
        return completion(answer)

    def model_is_unknown(self, error: Any) -> bool:
        """Return whether a 404 means an unknown model.

        If the model is unknown, the error names it; the error from a server without a list of models does not.
        """
        return bool(error.code == "model_not_found")

    def _temperature(self, requested: float) -> float:
        """Return the temperature to send; the log says once that it is lower than requested."""
        if requested > self.max_temperature and requested not in self._lowered:
            self._lowered.add(requested)
            setting = f"llm.models.{self.settings.name}.max_temperature"
            log.info("temperature %g of the method is lowered to %g (%s)", requested, self.max_temperature, setting)
        return min(requested, self.max_temperature)


def completion(answer: object) -> ChatReply:
    """Convert the API's answer to a completion.

    Only its text counts: reasoning is left out, whether in parts of the content or in a field of its own.

    Raises:
        MalformedError: The answer is not a chat completion. The SDK validates nothing: a gateway's error page arrives
            as a string, a missing field as None.
    """
    choices = answer.choices if isinstance(answer, ChatCompletion) else None
    message = getattr(choices[0], "message", None) if isinstance(choices, list) and choices else None
    text = text_of(getattr(message, "content", None))
    if not isinstance(answer, ChatCompletion) or not choices or message is None or text is None:
        raise MalformedError
    use: Any = answer.usage
    cached = getattr(getattr(use, "prompt_tokens_details", None), "cached_tokens", None) or 0
    return ChatReply(
        text=text,
        usage=Usage(
            input=(getattr(use, "prompt_tokens", None) or 0) - cached,
            cached=cached,
            output=getattr(use, "completion_tokens", None) or 0,
        ),
        loss="refused" if getattr(message, "refusal", None) else _LOSSES.get(str(choices[0].finish_reason)),
    )
