"""Chat completions through OpenAI's official SDK: OpenAI, Azure, and whatever else serves them at a `base_url`.

vLLM, Ollama and llama.cpp do, without a key. What goes out is what `render` writes and the settings below.
"""

from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Unpack

import openai
from openai.types.chat import ChatCompletion

from common.validate import at_least, not_empty, one_of, positive
from server.llm.base import Provider, Request
from server.llm.remote.chat import Completion, MalformedError, RemoteSettings, key_of
from server.llm.remote.provider import Remote
from server.llm.render import WORDING
from server.llm.spending import Spending, Usage

_LOSSES = {"length": "truncated", "content_filter": "filtered"}
_SEEDS = 2**31  # some servers read 32 bits


def provider(
    *,
    name: str,
    model: str,
    max_tokens: int = 4096,
    base_url: str | None = None,
    timeout: float = 600.0,
    key_variable: str | None = "OPENAI_API_KEY",
    length_field: str = "max_completion_tokens",
    temperature: bool = True,
    seed: bool = False,
    spending: Spending | None = None,
    **layer: Unpack[RemoteSettings],
) -> Provider:
    """One model behind chat completions.

    Args:
        name: How reports and candidates name it.
        model: The server's name for it; with Azure the deployment's.
        max_tokens: Bound on one answer, all `n` texts of a request and the model's reasoning together.
        base_url: The server, up to `/v1`; None: OpenAI's.
        timeout: Seconds for one answer.
        key_variable: Environment variable that holds the key; None for a server without keys.
        length_field: "max_completion_tokens", or "max_tokens" for older servers.
        temperature: Send `Request.temperature`; models that reason refuse it.
        seed: Send a seed, for servers that draw by it.
        spending: The run's account.
        layer: See `Remote`.

    Raises:
        ProviderError: No key in the environment. Raised here, so that a run stops before it touches private data.
    """
    chat = ChatCompletions(
        model=model,
        max_tokens=max_tokens,
        base_url=base_url,
        timeout=timeout,
        key=key_of(name, key_variable) if key_variable else "none",
        length_field=length_field,
        temperature=temperature,
        seed=seed,
    )
    return Remote(name=name, chat=chat, spending=spending, **layer)


class ChatCompletions:
    """See `server.llm.remote.chat.Chat`, and `provider` for the arguments."""

    errors: tuple[type[Exception], ...] = (openai.APIError, ValueError)

    def __init__(
        self,
        *,
        model: str,
        max_tokens: int,
        base_url: str | None,
        timeout: float,
        key: str,
        length_field: str,
        temperature: bool,
        seed: bool,
    ) -> None:
        not_empty(model=model)
        at_least(1, max_tokens=max_tokens)
        positive(timeout=timeout)
        one_of(("max_completion_tokens", "max_tokens"), length_field=length_field)
        self.model, self.max_tokens = model, max_tokens
        sent = f"max_tokens={max_tokens}/temperature={temperature}/seed={seed}"
        self.identity = f"openai/{model}/{base_url or ''}/{sent}/wording={WORDING}"
        self._length_field, self._temperature, self._seed = length_field, temperature, seed
        self._new_client = partial(openai.AsyncOpenAI, api_key=key, base_url=base_url, timeout=timeout, max_retries=0)

    def client(self) -> AbstractAsyncContextManager[Any]:
        """A new client."""
        return self._new_client()

    async def complete(self, client: Any, system: str, user: str, request: Request) -> Completion:  # noqa: ANN401
        """Send one prompt. Servers cache what prompts begin with by themselves."""
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
            self._length_field: self.max_tokens,
        }
        if self._temperature:
            body["temperature"] = request.temperature
        if self._seed:
            body["seed"] = request.seed % _SEEDS
        return completion(await client.chat.completions.create(**body))

    async def look(self, client: Any) -> None:  # noqa: ANN401
        """Ask for the model by name; a server that has no such list answers with a 404 of its own kind."""
        try:
            await client.models.retrieve(self.model)
        except openai.NotFoundError as error:
            if error.code == "model_not_found":
                raise


def completion(answer: object) -> Completion:
    """Read a chat completion.

    Raises:
        MalformedError: It is none. The SDK validates nothing: a gateway's error page arrives as a string, a missing
            field as None.
    """
    choices = answer.choices if isinstance(answer, ChatCompletion) else None
    message = choices[0].message if isinstance(choices, list) and choices else None
    if not isinstance(answer, ChatCompletion) or not choices or message is None:
        raise MalformedError
    use: Any = answer.usage
    cached = getattr(getattr(use, "prompt_tokens_details", None), "cached_tokens", None) or 0
    return Completion(
        text=message.content or "",
        usage=Usage(
            input=(getattr(use, "prompt_tokens", None) or 0) - cached,
            cached=cached,
            output=getattr(use, "completion_tokens", None) or 0,
        ),
        loss="refused" if message.refusal else _LOSSES.get(choices[0].finish_reason),
    )
