"""A remote model's server as the coordinator sees it: its settings, the prompts sent to it and its answers."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from common.address import check_web_address
from common.errors import ProviderError
from common.system.network_variables import HTTPX, check_network_variables, key_in
from common.validate import at_least, in_range, not_empty, positive
from server.llm.base import Reply, Request
from server.llm.parse import parse
from server.llm.remote.retry import Clock
from server.llm.render import Prompts, our_prompts, whole
from server.llm.spending import Price, Usage

_CHARACTERS_PER_TOKEN = 4.0
_TOKENS_PER_WORD = 1.4
_AROUND_A_PROMPT = 64  # tokens at most that a chat template adds
_ERRORS = range(400, 600)
_MEANT = {
    429: ("rate limit", "too many requests", "resource exhausted", "quota"),
    503: ("overloaded", "unavailable", "busy"),
    401: ("authentication", "api key", "unauthorized"),
    403: ("permission",),
    404: ("not found",),
    500: ("server error", "internal", "api error", "timeout"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSettings:
    """The settings that every remote model has in its YAML.

    Attributes:
        name: Name of the model in reports and candidates.
        model: The server's name for the model; with Azure, the name of the deployment.
        max_tokens: Maximum number of tokens in one answer, which includes all `n` texts of a request and the model's
            reasoning.
        base_url: Alternative address with the same protocol, such as a company's gateway; None uses the provider's own.
        timeout: Seconds to wait for one answer.
        key_variable: Environment variable with the key; None for a server without keys.
        concurrency: Maximum number of concurrent requests.
        requests_per_minute: The account's limit, spread evenly over time; None for no limit.
        tokens_per_minute: The account's limit on tokens read and written, spread evenly over time; None for no limit.
        retries: Number of further attempts at a request that failed temporarily.
        price: Fields of `Price`; None if the price is unknown.
        clock: Source of time; tests replace it.
        prompts: Wordings of the prompts.
    """

    name: str
    model: str
    max_tokens: int = 4096
    base_url: str | None = None
    timeout: float = 600.0
    key_variable: str | None
    concurrency: int = 8
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    retries: int = 6
    price: Mapping[str, Any] | None = None
    clock: Clock = field(default_factory=Clock)
    prompts: Prompts = field(default_factory=our_prompts)

    def __post_init__(self) -> None:
        """Raise an error for wrong settings or a missing key, before the run accesses private data."""
        not_empty(name=self.name, model=self.model)
        at_least(1, max_tokens=self.max_tokens)
        at_least(0, retries=self.retries)
        positive(timeout=self.timeout)
        in_range(1, 256, concurrency=self.concurrency)
        if self.base_url is not None:
            check_web_address("base_url", self.base_url)
        check_network_variables(HTTPX)
        self.key()

    def key(self) -> str:
        """Return the key, read from the environment each time so that no object stores it.

        Raises:
            ProviderError: The environment variable is not set.
            ConfigError: It has characters that no key has.
        """
        if self.key_variable is None:
            return "none"
        key = key_in(self.key_variable)
        if not key:
            raise ProviderError(
                f"no key for the language model {self.name}",
                expected=f"the environment variable {self.key_variable}",
                got="nothing",
                do=f"export {self.key_variable}, or choose the built-in model, which needs none",
            )
        return key

    def token_price(self) -> Price | None:
        """Return the price of this model's tokens; None if it is unknown."""
        return Price(**self.price) if self.price else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """One answer of a model, in the same form for all servers.

    Attributes:
        text: The text of the answer.
        usage: Tokens read and written.
        loss: "refused", "filtered" or "truncated" if the server reports it, otherwise None.
    """

    text: str
    usage: Usage
    loss: str | None = None


def read_reply(completion: ChatReply, prompt: tuple[str, str], request: Request) -> Reply:
    """Return the reply to a request with this prompt; the texts are parsed from the completion."""
    refused = completion.loss in ("refused", "filtered")
    cut = completion.loss == "truncated"
    texts = () if refused else parse(completion.text, request.n, phrases=request.phrases, cut=cut)
    use = completion.usage
    return Reply(
        texts=texts,
        input_tokens=use.read,
        output_tokens=use.output,
        cached_tokens=use.cached,
        loss=completion.loss,
        prompt=whole(prompt),
        raw=completion.text,
    )


def estimate(prompt: tuple[str, str], request: Request, max_tokens: int) -> tuple[int, int]:
    """Estimate input tokens, one per four characters of the prompt, and output tokens, 1.4 per word."""
    size = sum(map(len, prompt)) / _CHARACTERS_PER_TOKEN
    return round(size), min(round(request.expected_words * _TOKENS_PER_WORD), max_tokens)


def with_usage(completion: ChatReply, prompt: tuple[str, str], request: Request, max_tokens: int) -> ChatReply:
    """Return the completion, with estimated usage if the server reported none, so that it counts towards any cap."""
    if completion.usage.tokens:
        return completion
    read_in, _ = estimate(prompt, request, max_tokens)
    return replace(completion, usage=Usage(input=read_in, output=round(len(completion.text) / _CHARACTERS_PER_TOKEN)))


def worst(prompt: tuple[str, str], max_tokens: int) -> Usage:
    """Return an upper bound on a request's usage: a token for each byte of the prompt, 64 for a chat template.

    All tokens read may also be written to a prompt cache.
    """
    return Usage(kept=sum(len(part.encode()) for part in prompt) + _AROUND_A_PROMPT, output=max_tokens)


class MalformedError(ValueError):
    """Error for an answer that is not a completion."""


class ReportedError(MalformedError):
    """Error under HTTP status 200, as gateways report it, with the attributes of an SDK's error."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        super().__init__("an error under HTTP status 200")
        self.status_code, self.body = _status_of(body), dict(body)


def refuse_reported_error(answer: object) -> None:
    """Raise `ReportedError` if the answer, as an SDK has read it, has an error and no completion."""
    error = (getattr(answer, "model_extra", None) or {}).get("error")
    if error and not getattr(answer, "choices", None) and not getattr(answer, "content", None):
        raise ReportedError(error if isinstance(error, Mapping) else {"message": str(error)})


def _status_of(body: Mapping[str, Any]) -> int:
    """Return the HTTP status that an error's code, type or, without both, message stands for; 400 for any other."""
    named = [str(body.get(name) or "") for name in ("code", "status", "type")]
    if status := next((int(value) for value in named if value.isdecimal() and int(value) in _ERRORS), None):
        return status
    words = (" ".join(named).strip() or str(body.get("message"))).lower().replace("_", " ")
    return next((status for status, meant in _MEANT.items() if any(word in words for word in meant)), 400)


class Chat(Protocol):
    """A server's protocol: how one prompt is sent through its official SDK, and how its answer is read."""

    @property
    def settings(self) -> RemoteSettings:
        """Settings of the model."""

    @property
    def identity(self) -> str:
        """Everything that an answer depends on in addition to the prompt."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """Exceptions that the SDK raises, and exceptions that an unreadable answer causes."""

    @property
    def endpoint(self) -> str:
        """What the SDK adds to `base_url` for a request, such as /v1/messages."""

    def client(self) -> AbstractAsyncContextManager[Any]:
        """Return a new client of the SDK, with the SDK's own retries off."""

    async def complete(
        self, client: Any, system: str, user: str, request: Request, *, max_tokens: int | None = None
    ) -> ChatReply:
        """Send one prompt, and return the model's completion, of at most `max_tokens` (None: as in the settings).

        Raises:
            MalformedError: The answer is not a completion. The SDK's own errors are raised too.
        """

    def model_is_unknown(self, error: Any) -> bool:
        """Return whether a 404 means that the model does not exist, and not that the server lists no models."""
