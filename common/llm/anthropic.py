"""Claude over the Messages API, through the official SDK, which owns transport, timeouts and retries.

What goes out is what `render` writes and the settings below; nothing else. The API's current version takes no sampling
temperature, so `Request.temperature` has no effect here: diversity comes from the exemplars that each prompt draws.
"""

import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

import anthropic
from anthropic.types import Message, TextBlock

from common.errors import ProviderError
from common.llm.base import Arrived, Reply, Request
from common.llm.render import WORDING, parse, render
from common.validate import in_range, not_empty

_KEY = "ANTHROPIC_API_KEY"
_RETRIES = 6
_MOST_TOKENS = 21_333  # above this the SDK insists on streaming: an answer could take more than ten minutes
_CHARACTERS_PER_TOKEN = 4.0
_TOKENS_PER_WORD = 1.4
_USUAL_WORDS, _WORDS_OF_A_PHRASE = 60, 3
_HOPELESS = (
    anthropic.AuthenticationError,
    anthropic.PaymentRequiredError,
    anthropic.PermissionDeniedError,
    anthropic.NotFoundError,
)


class _MalformedError(Exception):
    """An answer that is no message."""


class Anthropic:
    """One Claude model.

    Args:
        name: How reports and candidates name it.
        model: The API's model name.
        max_tokens: Bound on one answer, all `n` texts of a request and the model's reasoning together.
        concurrency: Requests in flight at once.
        base_url: Another address that speaks the same protocol, such as a gateway of the house.

    Raises:
        ProviderError: No key in the environment. Raised here, so that a run stops before it touches private data.
    """

    def __init__(
        self, *, name: str, model: str, max_tokens: int = 4096, concurrency: int = 4, base_url: str | None = None
    ) -> None:
        not_empty(name=name, model=model)
        in_range(1, _MOST_TOKENS, max_tokens=max_tokens)
        in_range(1, 64, concurrency=concurrency)
        key = os.environ.get(_KEY)
        if not key:
            raise ProviderError(
                f"no key for the language model {name}",
                expected=f"the environment variable {_KEY}",
                got="nothing",
                do=f"export {_KEY}, or choose the embedded model, which needs none",
            )
        self.name = name
        self.identity = f"anthropic/{model}/max_tokens={max_tokens}/wording={WORDING}"
        self._model = model
        self._max_tokens = max_tokens
        self._concurrency = concurrency
        # The key is passed on, so that the SDK looks for no other credential; tracing could put texts into spans.
        self._client = anthropic.Anthropic(api_key=key, base_url=base_url, max_retries=_RETRIES, open_telemetry=False)

    def generate(self, requests: Sequence[Request], *, arrived: Arrived | None = None) -> list[Reply]:
        """See `Provider.generate`. A refused, empty, malformed or finally failed answer is an empty reply.

        Raises:
            ProviderError: The key, the account or the model is refused, or every single request failed.
        """
        replies = [Reply(texts=(), input_tokens=0, output_tokens=0)] * len(requests)
        failure: Exception | None = None
        failed = 0
        pool = ThreadPoolExecutor(self._concurrency, thread_name_prefix=f"llm-{self.name}")
        try:
            places = {pool.submit(self._ask, request): place for place, request in enumerate(requests)}
            for future in as_completed(places):
                place = places[future]
                try:
                    replies[place] = future.result()
                except _HOPELESS as error:
                    raise self._broken(error) from error
                except (anthropic.APIError, _MalformedError) as error:
                    failure, failed = error, failed + 1
                if arrived is not None:
                    arrived(place, replies[place])
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        if failure is not None and failed == len(requests):
            raise self._broken(failure) from failure
        return replies

    def estimate(self, request: Request) -> tuple[int, int]:
        """Input and output tokens to expect: four characters a token, and 1.4 tokens a word where words are known."""
        size = sum(map(len, render(request))) / _CHARACTERS_PER_TOKEN
        shown = request.good or request.source
        unseen = _WORDS_OF_A_PHRASE if request.phrases else _USUAL_WORDS
        usual = sum(len(text.split()) for text in shown) / len(shown) if shown else unseen
        written = request.n * (request.words or usual) * _TOKENS_PER_WORD
        return round(size), min(round(written), self._max_tokens)

    def _ask(self, request: Request) -> Reply:
        system, user = render(request)
        try:
            message: object = self._client.messages.create(
                model=self._model,
                max_tokens=self._max_tokens,
                system=system,
                messages=[{"role": "user", "content": user}],
            )
        except json.JSONDecodeError as error:
            raise _MalformedError from error
        # The SDK validates nothing: a gateway's error page arrives as a string, a missing field as None.
        if not isinstance(message, Message) or not isinstance(message.content, list):
            raise _MalformedError
        written = "".join(block.text for block in message.content if isinstance(block, TextBlock))
        refused = message.stop_reason == "refusal"
        texts = () if refused else parse(written, request.n, request.shown, phrases=request.phrases)
        usage = message.usage
        return Reply(
            texts=texts,
            input_tokens=getattr(usage, "input_tokens", None) or 0,
            output_tokens=getattr(usage, "output_tokens", None) or 0,
        )

    def _broken(self, error: Exception) -> ProviderError:
        # The SDK's own message may quote the prompt, so only the kind of error and its status are passed on.
        status = getattr(error, "status_code", "none")
        return ProviderError(
            f"the language model {self.name} does not answer",
            expected="a message",
            got=f"{type(error).__name__.lstrip('_')}, HTTP status {status}",
            where=self._model,
            do="check the key, the model's name, the account's limits and the network; a cached run loses nothing",
        )
