"""One retry policy for requests that fail, and one rate limiter for all requests to a model.

    what failed                                              what follows
    408, 409, 429, 5xx, no connection, no answer in time     again, after Retry-After or with backoff and jitter
    401, 402, 403, 404, an account without credit            the model is given up at once
    too long a prompt, a content filter, other 4xx, not JSON  one item is lost

The SDKs' own retries are off, so that waits do not add up. The clock is an argument, so that tests do not wait.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TypeVar

from common.validate import at_least, positive

Answer = TypeVar("Answer")

_AGAIN = {408, 409, 429}
_HOPELESS = {401, 402, 403, 404}
_NO_CREDIT = ("insufficient_quota", "billing", "spend_limit", "credit balance")
_TOO_LONG = ("context_length", "context length", "context size", "context_size", "context window", "prompt is too long")
_FILTERED = ("content_filter", "content_policy", "content management policy")
_SERVER, _UNAVAILABLE = 500, 503
_QUOTE_KEYS = {401, 403}
_LONGEST_QUOTE = 200
_MINUTE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Sources of time and of random numbers.

    Attributes:
        now: Function that returns seconds of a monotonic clock.
        date: Function that returns seconds since 1970, for the dates in headers.
        sleep: Function that waits for a number of seconds.
        chance: Function that draws uniformly from [0, 1), for the jitter.
    """

    now: Callable[[], float] = time.monotonic
    date: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    chance: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Classification of a failed request.

    Attributes:
        kind: "again", "hopeless", or one of `server.llm.base.LOSSES` if only one item is lost.
        summary: The kind of error and its status, without anything that might quote a prompt.
        wait: Seconds that the server asks the client to wait; None if it does not ask.
        do: Advice to the operator.
    """

    kind: str
    summary: str
    wait: float | None = None
    do: str = "check the key, the model's name, the account's limits and the network; replies so far are kept"


def failure_of(  # noqa: PLR0911 one for each line of the table above
    error: Exception, *, date: float
) -> Failure:
    """Classify an SDK's error by its `status_code`, `response` and `body`, which both SDKs set if a server answered.

    Args:
        error: Error raised by the SDK.
        date: The current time in seconds since 1970.
    """
    status = getattr(error, "status_code", None)
    summary = f"{type(error).__name__.lstrip('_')}, HTTP status {status or 'none'}"
    if status is None:
        if isinstance(error, ValueError):
            return Failure(kind="malformed", summary=summary)
        return Failure(kind="again", summary=summary, do="check the network, base_url and the proxy in HTTPS_PROXY")
    body = str(getattr(error, "body", "")).lower()
    if any(word in body for word in _NO_CREDIT):
        return Failure(
            kind="hopeless", summary=f"{summary}, no credit or quota left", do="top up the account, then go on"
        )
    if status == _UNAVAILABLE:
        do = "the server is busy, or still loads its model: try again when it is ready; replies so far are kept"
        return Failure(kind="again", summary=summary, wait=_retry_after(error, date), do=do)
    if status in _AGAIN or status >= _SERVER:
        return Failure(kind="again", summary=summary, wait=_retry_after(error, date))
    if any(word in body for word in _TOO_LONG):
        do = "show fewer exemplars (method.shots), ask for fewer or shorter texts, or take a model of longer context"
        return Failure(kind="too long", summary=f"{summary}, prompt too long", do=do)
    if any(word in body for word in _FILTERED):
        return Failure(kind="filtered", summary=f"{summary}, content filter")
    return Failure(kind="hopeless" if status in _HOPELESS else "failed", summary=summary)


def server_message(error: Exception) -> str:
    """Return a colon and the server's error message, which may quote the prompt; empty if there is no message.

    A message about a key is left out, since it may quote the key.
    """
    body = getattr(error, "body", None)
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body = body["error"]
    words = body.get("message") or body.get("detail") if isinstance(body, dict) else None
    if not words or getattr(error, "status_code", None) in _QUOTE_KEYS:
        return ""
    return f": {' '.join(str(words).split())[:_LONGEST_QUOTE]}"


class UnansweredError(Exception):
    """Error for a request that was given up.

    Attributes:
        failure: Classification of the last failure.
        cause: Error from the SDK, from which `failure` was derived.
    """

    def __init__(self, failure: Failure, cause: Exception) -> None:
        super().__init__(failure.summary)
        self.failure, self.cause = failure, cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """Number and timing of the retries.

    Attributes:
        most: Maximum number of retries of one request.
        first: Seconds to wait before the first retry if the server specifies no time; the wait doubles with each
            attempt.
        longest: Upper bound of these waits in seconds.
        patience: Longest wait in seconds that a server may ask for; if it asks for more, the request is given up.
        clock: Source of time and of random numbers.
    """

    most: int = 6
    first: float = 1.0
    longest: float = 60.0
    patience: float = 600.0
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        at_least(0, retries=self.most)
        positive(first=self.first, longest=self.longest, patience=self.patience)

    async def answer(
        self,
        ask: Callable[[], Awaitable[Answer]],
        *,
        errors: tuple[type[Exception], ...],
        pause: Callable[[float], None] | None = None,
    ) -> Answer:
        """Send a request until it is answered, and return the answer.

        Args:
            ask: Sends the request once.
            errors: Exceptions of the SDK.
            pause: Blocks all requests for the number of seconds that the server specifies; if None, only this request
                waits.

        Raises:
            UnansweredError: The last failure is not temporary, or there were too many failures.
        """
        for attempt in range(self.most + 1):
            try:
                return await ask()
            except errors as error:
                failure = failure_of(error, date=self.clock.date())
                if failure.kind != "again" or attempt == self.most or (failure.wait or 0) > self.patience:
                    raise UnansweredError(failure, error) from error
            if failure.wait is not None and pause is not None:
                pause(failure.wait)
            else:
                await self.clock.sleep(self._backoff(attempt) if failure.wait is None else failure.wait)
        raise AssertionError

    def _backoff(self, attempt: int) -> float:
        """Return the wait in seconds before retry `attempt`, from 0: 50 to 100 % of a delay that doubles each time."""
        return float(min(self.longest, self.first * 2**attempt)) * (0.5 + self.clock.chance() / 2)


class RateLimiter:
    """Paces the requests to one model evenly, by requests and by tokens per minute; a pause blocks all requests.

    Services count rejected requests too. In tests with a limit per second or per five seconds and 8 or 32 concurrent
    requests, most of which succeeded, a common pause avoided 30 to 50 % of the rejections that occurred with separate
    waits for each request or with the SDK's retries. With the common pause, all requests together took 1.0 to 1.4 times
    as long (1.9 times if 32 requests share a limit of 10 per second).

    Args:
        requests_per_minute: Maximum number of requests; None for no limit.
        tokens_per_minute: Maximum number of tokens read and written; None for no limit.
        clock: Source of time.
    """

    def __init__(self, *, requests_per_minute: float | None, tokens_per_minute: float | None, clock: Clock) -> None:
        for limit in (requests_per_minute, tokens_per_minute):
            if limit is not None:
                positive(limit_per_minute=limit)
        self._clock = clock
        self._seconds_per_request = _MINUTE / requests_per_minute if requests_per_minute else 0.0
        self._seconds_per_token = _MINUTE / tokens_per_minute if tokens_per_minute else 0.0
        self._free_at = self._paused_until = float("-inf")

    async def enter(self, tokens: int) -> None:
        """Wait until a request with this expected number of tokens may be sent."""
        now = self._clock.now()
        turn = max(now, self._free_at)
        self._free_at = turn + max(self._seconds_per_request, tokens * self._seconds_per_token)
        while (wait := max(turn, self._paused_until) - self._clock.now()) > 0:
            await self._clock.sleep(wait)

    def used(self, tokens: int) -> None:
        """Correct the pace by the number of tokens used beyond those expected, which may be negative."""
        self._free_at += tokens * self._seconds_per_token

    def pause(self, seconds: float) -> None:
        """Block all requests for `seconds`."""
        self._paused_until = max(self._paused_until, self._clock.now() + seconds)


def _retry_after(error: Exception, date: float) -> float | None:
    """Return the seconds in a Retry-After header, which contains seconds or a date; None if missing or unreadable."""
    header = getattr(getattr(error, "response", None), "headers", {}).get("retry-after")
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        then = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max(0.0, (then if then.tzinfo else then.replace(tzinfo=UTC)).timestamp() - date)
