"""One retry policy for requests that fail, and one rate limiter for all requests to a model.

    what failed                                              what follows
    408, 409, 429, 5xx, no connection, no answer in time     again, after Retry-After or with backoff and jitter
    401, 402, 403, 404, an account without credit            the model is given up at once
    a parameter of ours that the server refuses              the model is given up at once, and our setting named
    too long a prompt, a content filter, other 4xx, not JSON  one item is lost

A server that answers no request at all is given up after two minutes (`Outage`). The SDKs' own retries are off, so that
waits do not add up. The clock is an argument, so that tests do not wait.
"""

import asyncio
import logging
import math
import random
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TypeVar

from common.validate import positive
from server.llm.remote.mistakes import SETTING, message_in, parameter_advice, refused_parameter

log = logging.getLogger("caucus.llm")

Answer = TypeVar("Answer")

_AGAIN = {408, 409, 429}
_REFUSING = {400, 422}
_HOPELESS = {401, 402, 403, 404}
_NO_CREDIT = ("insufficient_quota", "billing", "spend_limit", "credit balance")
_TOO_LONG = ("context_length", "context length", "context size", "context_size", "context window", "prompt is too long")
_FILTERED = ("content_filter", "content_policy", "content management policy")
_DAILY = ("per day", "per-day", "daily limit", "daily quota")
_SERVER, _UNAVAILABLE = 500, 503
_QUOTE_KEYS = {401, 403}
_LONGEST_QUOTE = 200
_MINUTE = 60.0
PATIENCE = 600.0
"""Longest wait in seconds that a server may ask a run for."""
_FIRST_BACKOFF, _LONGEST_BACKOFF = 1.0, 60.0  # seconds, if the server specifies no time
_LONGEST_OUTAGE, _FEWEST_FAILURES = 120.0, 3
_UNITS = (0.001, 1.0, 60.0, 3600.0, 86_400.0)
_SPAN = re.compile(
    r"(\d+(?:\.\d+)?)\s*(?:(ms|milliseconds?)|(s|secs?|seconds?)|(m|mins?|minutes?)|(h|hours?)|(d|days?))(?![a-z])"
)
_WAIT_IN_MESSAGE = re.compile(rf"(?:again|retry|wait)[^\d.;:(]{{0,20}}((?:{_SPAN.pattern}[\s,]*)+)")


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
        do: Advice to the operator, which may have a setting of the model (`SETTING`).
        wait: Seconds that the server asks the client to wait; None if it does not ask.
        refused: The parameter that the server refuses; empty if it refuses none.
    """

    kind: str
    summary: str
    do: str = "check the key, the model's name, the account's limits and the network; replies so far are kept"
    wait: float | None = None
    refused: str = ""

    def advice(self, model: str) -> str:
        """Return the advice with the name of the model."""
        return self.do.replace(SETTING, SETTING.replace("NAME", model))


def failure_of(  # noqa: PLR0911 one for each line of the table above
    error: Exception, *, date: float
) -> Failure:
    """Classify an SDK's error by its `status_code`, `response` and `body`, which both SDKs set if a server answered.

    The `date` is the current time in seconds since 1970.
    """
    status = getattr(error, "status_code", None)
    summary = f"{type(error).__name__.lstrip('_')}, HTTP status {status or 'none'}"
    if status is None:
        if isinstance(error, ValueError):
            do = "check that base_url is the address of an API, which answers in JSON, and not that of a web page"
            return Failure(kind="malformed", summary=summary, do=do)
        do = "check the network, base_url (http or https?) and the proxy in HTTPS_PROXY"
        return Failure(kind="again", summary=summary, do=do)
    body = str(getattr(error, "body", "")).lower()
    if any(word in body for word in _NO_CREDIT):
        do = "top up the account, then go on"
        return Failure(kind="hopeless", summary=f"{summary}, no credit or quota left", do=do)
    if status == _UNAVAILABLE:
        do = "the server is busy, or still loads its model: try again when it is ready; replies so far are kept"
        return Failure(kind="again", summary=summary, wait=_retry_after(error, date), do=do)
    refused = refused_parameter(error)
    if status in _AGAIN or (status >= _SERVER and refused != "system"):  # a chat template fails with 500
        wait = _retry_after(error, date)
        if wait is None and any(word in body for word in _DAILY):
            do = "go on tomorrow, or raise the account's limit; replies so far are kept"
            return Failure(kind="hopeless", summary=f"{summary}, the limit of the day is used up", do=do)
        return Failure(kind="again", summary=summary, wait=wait)
    if any(word in body for word in _TOO_LONG):
        do = "show fewer exemplars (method.shots), ask for fewer or shorter texts, or take a model of longer context"
        return Failure(kind="too long", summary=f"{summary}, prompt too long", do=do)
    if any(word in body for word in _FILTERED):
        return Failure(kind="filtered", summary=f"{summary}, content filter")
    if refused is not None and (status in _REFUSING or refused == "system"):
        do = f"use {parameter_advice(refused, error)}"
        return Failure(kind="hopeless", summary=f"{summary}, {refused} refused", refused=refused, do=do)
    return Failure(kind="hopeless" if status in _HOPELESS else "failed", summary=summary)


def server_message(error: Exception) -> str:
    """Return a colon and the server's error message, which may quote the prompt; empty if there is no message.

    A message about a key is left out, since it may quote the key.
    """
    body = getattr(error, "body", None)
    words = message_in(body) if isinstance(body, dict) else ""
    if not words or getattr(error, "status_code", None) in _QUOTE_KEYS:
        return ""
    return f": {words[:_LONGEST_QUOTE].rstrip('.')}"


class UnansweredError(Exception):
    """Error for a request that was given up.

    Attributes:
        failure: Classification of the last failure.
        cause: Error from the SDK, from which `failure` was derived.
        public: Whether the request's prompt may be shown, and so the server's own message, which may quote it.
    """

    def __init__(self, failure: Failure, cause: Exception) -> None:
        super().__init__(failure.summary)
        self.failure, self.cause, self.public = failure, cause, False


async def ask_with_retries(
    ask: Callable[[], Awaitable[Answer]],
    *,
    errors: tuple[type[Exception], ...],
    most: int,
    clock: Clock,
    patience: float = PATIENCE,
    pause: Callable[[float], None] | None = None,
    outage: "Outage | None" = None,
) -> Answer:
    """Send a request by `ask` until it is answered, and return the answer.

    Args:
        ask: Sends the request once.
        errors: Exceptions of the SDK.
        most: Maximum number of retries.
        clock: Source of time.
        patience: Longest wait in seconds that a server may ask for; if it asks for more, the request is given up.
        pause: Blocks all requests for as many seconds as the server asks for; without it, only this request waits.
        outage: Notes the failures of all requests to the server; once it lasts too long, nothing is tried again.

    Raises:
        UnansweredError: The last failure is not temporary, or there were too many failures.
    """
    for attempt in range(most + 1):
        try:
            return await ask()
        except errors as error:
            failure = failure_of(error, date=clock.date())
            given_up = outage is not None and outage.lasts_too_long(failure)
            if failure.kind != "again" or attempt == most or (failure.wait or 0) > patience or given_up:
                raise UnansweredError(failure, error) from error
        if failure.wait is not None and pause is not None:
            pause(failure.wait)
        elif failure.wait is not None:
            await clock.sleep(failure.wait)
        else:  # 50 to 100% of a delay that doubles each time
            backoff = min(_LONGEST_BACKOFF, _FIRST_BACKOFF * 2**attempt)
            await clock.sleep(backoff * (0.5 + clock.chance() / 2))
    raise AssertionError


class Outage:
    """The time for which a server has answered none of our requests, not even with a time to come back.

    Attributes:
        too_long: Whether this time has exceeded two minutes.
    """

    def __init__(self, *, model: str, clock: Clock) -> None:
        self.too_long = False
        self._model, self._clock = model, clock
        self._since: float | None = None
        self._failures = 0

    @property
    def under_way(self) -> bool:
        """Whether the last request got no answer."""
        return self._since is not None

    def lasts_too_long(self, failure: Failure) -> bool:
        """Note a failure; return whether the server has been tried for two minutes without an answer."""
        if failure.kind != "again" or failure.wait is not None:
            self.end()
            return False
        now = self._clock.now()
        self._failures += 1
        if self._since is None:
            self._since = now
            until = f"for up to {_LONGEST_OUTAGE / _MINUTE:g} minutes"
            log.info("%s does not answer (%s): it is tried again %s", self._model, failure.summary, until)
        # A server that is slow, and not away, fails few times in two minutes.
        self.too_long = now - self._since >= _LONGEST_OUTAGE and self._failures >= _FEWEST_FAILURES
        return self.too_long

    def end(self) -> None:
        """Note an answer."""
        self._since, self._failures, self.too_long = None, 0, False


class RateLimiter:
    """Paces the requests to one model evenly, by requests and by tokens per minute; a pause blocks all requests.

    Services count rejected requests too. In tests with 8 or 32 concurrent requests, a common pause avoided 30 to 50%
    of the rejections that occurred with separate waits or with the SDK's retries, and took 1.0 to 1.4 times as long
    (1.9 times if 32 requests share a limit of 10 per second).
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
    """Return the seconds that a server asks to wait; None if it does not ask, or unreadably.

    The Retry-After header has seconds, a date, or, of some gateways, words such as 1m30s. Without a header the
    message counts ("try again in 20s").
    """
    header = getattr(getattr(error, "response", None), "headers", {}).get("retry-after")
    if header is None:
        asked = _WAIT_IN_MESSAGE.search(message_in(getattr(error, "body", None)).lower())
        return _seconds(asked[1]) if asked else None
    try:
        seconds = float(header)
        return max(0.0, seconds) if math.isfinite(seconds) else None
    except ValueError:
        pass
    try:
        then = parsedate_to_datetime(header)
    except ValueError:
        return _seconds(header.lower())
    return max(0.0, (then if then.tzinfo else then.replace(tzinfo=UTC)).timestamp() - date)


def _seconds(words: str) -> float | None:
    """Return the seconds in words such as 1m30s or 2 minutes; None if there are none."""
    spans = [(float(number), units) for number, *units in _SPAN.findall(words)]
    seconds = (number * unit for number, units in spans for unit, word in zip(_UNITS, units, strict=True) if word)
    return sum(seconds) if spans else None
