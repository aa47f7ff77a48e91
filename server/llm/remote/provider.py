"""The request layer that all remote models share: bounded concurrency, pacing, retries, spending and lost requests.

    take a request -> hold its worst cost -> wait for the rate limiter -> ask -> settle -> deliver
                          |  cap reached       ^        |
                          stop                 |_ again _|  hopeless: stop

After a stop, no further request starts; requests under way are finished and their replies delivered, so that a cache
can store them. `cancel_requests`, for Ctrl-C, ends them and closes the connections. The requests of one call run
concurrently in one event loop, in the calling thread; several models need several threads.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from common.errors import ModelSettingError, ProviderError
from server.llm.base import Arrived, Reply, Request
from server.llm.remote.chat import Chat, ChatReply, estimate, read_reply, with_usage, worst
from server.llm.remote.mistakes import likely_mistake, url_tried
from server.llm.remote.retry import PATIENCE, Outage, RateLimiter, UnansweredError, ask_with_retries, server_message
from server.llm.spending import Spending, Usage

_MOST_LOST_IN_A_ROW = 8
_LOOK_AGAIN_S = 0.1
_CHECK_RETRIES, _CHECK_PATIENCE = 2, 60.0
_NOT_FOUND = 404
_PROBE = "You answer with one word.", "Say yes."
_PROBED = Request(task_kind="word", labels=(("yes", "yes"),))
_PROBE_TOKENS = 16  # a model that reasons uses them up, and has answered all the same
_LONGEST_CANCEL_S = 5.0
_LONGEST_WAIT = 366 * 86_400.0  # of which a date is said


class Remote:
    """A model on a remote server.

    Args:
        chat: Protocol of the model's server, with the model's settings.
        spending: Account of the run; None uses a separate account without a cap.

    Raises:
        ConfigError: A limit or the price is out of range, or the run has a cap on money and this model's price is
            unknown.
    """

    remote = True
    declines = frozenset[str]()

    def __init__(self, *, chat: Chat, spending: Spending | None = None) -> None:
        settings = chat.settings
        self.name = settings.name
        self.identity = chat.identity
        self._chat = chat
        self._render = settings.prompts.render
        self._max_tokens = settings.max_tokens
        self._concurrency = settings.concurrency
        self._clock = settings.clock
        self._limiter = RateLimiter(
            requests_per_minute=settings.requests_per_minute,
            tokens_per_minute=settings.tokens_per_minute,
            clock=settings.clock,
        )
        self._price = settings.token_price()
        self._spending = spending or Spending()
        self._spending.admits(self.name, self._price)
        self._outage = Outage(model=self.name, clock=settings.clock)
        self._answered, self._lost_in_a_row = 0, 0

    def check(self) -> None:
        """Check that the model answers: look it up or, if the server has no list of models, request one word."""
        _run(self._check_model())

    def generate(self, requests: Sequence[Request], *, arrived: Arrived | None = None) -> list[Reply]:
        """Generate the replies (`server.llm.base.Provider`). Refused, malformed or failed answers give empty replies.

        Raises:
            ProviderError: The key, the account or the model is rejected, the server no longer answers, or the run's cap
                on spending is reached.
        """
        if not requests:
            return []
        job = PendingCall(requests=requests, todo=deque(range(len(requests))), arrived=arrived)
        _run(self._all(job))
        lost_at_the_end = self._outage.under_way or not self._answered
        if job.stop is None and job.unanswered is not None and lost_at_the_end:
            job.stop = self._broken(job.unanswered)
        if job.stop is not None:
            raise job.stop
        return [job.replies[place] for place in range(len(requests))]

    def estimate(self, request: Request) -> tuple[int, int]:
        """Estimate input and output tokens (`server.llm.remote.chat.estimate`)."""
        return estimate(self._render(request), request, self._max_tokens)

    async def _all(self, job: "PendingCall") -> None:
        async with self._chat.client() as client:
            await asyncio.gather(*(self._work(client, job) for _ in range(min(self._concurrency, len(job.requests)))))

    async def _work(self, client: Any, job: "PendingCall") -> None:
        """Run one of `concurrency` workers, which sends requests until none is left or the job is stopped."""
        while job.todo and job.stop is None:
            place = job.todo.popleft()
            prompt = self._render(job.requests[place])
            most = worst(prompt, self._max_tokens)
            while (verdict := self._spending.hold(most, self._price)) == "wait" and job.stop is None:
                await self._clock.sleep(_LOOK_AGAIN_S)
            if verdict != "held":
                job.stop = job.stop or self._spending.exhausted(self.name, most, self._price)
                return
            completion = None
            try:
                completion = await self._ask(client, job, prompt, job.requests[place])
            finally:
                used = completion.usage if completion else None
                self._spending.settle(self.name, most, used, self._price)
            if completion is not None:
                job.deliver(place, read_reply(completion, prompt, job.requests[place]))

    async def _ask(
        self, client: Any, job: "PendingCall", prompt: tuple[str, str], request: Request
    ) -> ChatReply | None:
        """Send one request until it is answered or lost; return the completion, or None if the job is stopped."""
        expected = sum(estimate(prompt, request, self._max_tokens))

        async def once() -> ChatReply | None:
            await self._limiter.enter(expected)
            return await self._chat.complete(client, *prompt, request) if job.stop is None else None

        try:
            completion = await ask_with_retries(
                once,
                errors=self._chat.errors,
                most=self._chat.settings.retries,
                clock=self._clock,
                pause=self._limiter.pause,
                outage=self._outage,
            )
        except UnansweredError as error:
            return self._lost(job, error, request)
        if completion is None:
            return None
        self._outage.end()
        self._answered += 1
        self._lost_in_a_row = 0
        completion = with_usage(completion, prompt, request, self._max_tokens)
        self._limiter.used(completion.usage.tokens - expected)
        return completion

    def _lost(self, job: "PendingCall", error: UnansweredError, request: Request) -> ChatReply | None:
        """Give up a request, and stop the job if the model will not answer other requests either.

        Returns:
            An empty completion with the reason; None if the failure is permanent, the server demands a long wait, or it
            has answered nothing for too long.
        """
        failure = error.failure
        if failure.refused and self._answered:  # the message quotes a prompt: other requests had the parameter too
            failure = replace(failure, kind="failed", refused="")
        error.public = request.may_be_shown
        if failure.kind == "hopeless" or (failure.wait or 0) > PATIENCE or self._outage.too_long:
            job.stop = job.stop or self._broken(error)
            return None
        if failure.kind == "filtered":
            return ChatReply(text="", usage=Usage(), loss=failure.kind)
        job.unanswered = error
        self._lost_in_a_row += 1
        if self._lost_in_a_row >= max(_MOST_LOST_IN_A_ROW, 2 * self._concurrency):
            job.stop = job.stop or self._broken(error)
        return ChatReply(text="", usage=Usage(), loss="failed" if failure.kind == "again" else failure.kind)

    async def _check_model(self) -> None:
        async with self._chat.client() as client:
            try:
                await ask_with_retries(
                    partial(self._look_up, client),
                    errors=self._chat.errors,
                    most=_CHECK_RETRIES,
                    clock=self._clock,
                    patience=_CHECK_PATIENCE,
                )
            except UnansweredError as error:
                error.public = True
                raise self._broken(error) from error.cause

    async def _look_up(self, client: Any) -> None:
        try:
            await client.models.retrieve(self._chat.settings.model)
        except self._chat.errors as error:
            if getattr(error, "status_code", None) != _NOT_FOUND or self._chat.model_is_unknown(error):
                raise
        else:
            return
        most = worst(_PROBE, _PROBE_TOKENS)
        if self._spending.hold(most, self._price) != "held":
            return  # the run asks for nothing either
        used = None
        try:
            used = (await self._chat.complete(client, *_PROBE, _PROBED, max_tokens=_PROBE_TOKENS)).usage
        finally:
            self._spending.settle(self.name, most, used, self._price)

    def _broken(self, error: UnansweredError) -> ProviderError:
        """Return the error for a model that does not answer; it quotes the server if the prompt was public."""
        failure, settings = error.failure, self._chat.settings
        got, do = failure.summary, failure.advice(self.name)
        if failure.wait:
            until = datetime.fromtimestamp(self._clock.date() + min(failure.wait, _LONGEST_WAIT), UTC)
            got += f", asks to wait {failure.wait:.0f} s, until {until:%Y-%m-%d %H:%M} UTC"
            do = "resume then, or raise the account's limit; replies so far are kept"
        if self._outage.too_long:
            got += ", and this for two minutes"
        mistake = "" if self._answered else likely_mistake(settings.base_url, self._chat.endpoint, error.cause)
        url = url_tried(error.cause, default=(settings.base_url or "") + self._chat.endpoint)
        lasts = bool(failure.refused or mistake) or getattr(error.cause, "status_code", None) == _NOT_FOUND
        return (ModelSettingError if lasts else ProviderError)(
            f"the language model {self.name} "
            + (f"refuses the parameter {failure.refused}" if failure.refused else "does not answer"),
            expected="a completion",
            got=got + server_message(error.cause) * error.public,
            where=f"{settings.model}, {url}",
            do=f"{mistake or do}; a new run is needed, since a resumed one keeps its settings" if lasts else do,
        )


@dataclass(slots=True, kw_only=True)
class PendingCall:
    """The requests of one call and their replies."""

    requests: Sequence[Request]
    todo: deque[int]
    arrived: Arrived | None
    stop: ProviderError | None = None
    unanswered: UnansweredError | None = None
    replies: dict[int, Reply] = field(default_factory=dict)

    def deliver(self, place: int, reply: Reply) -> None:
        """Store one reply, and pass it to the caller."""
        self.replies[place] = reply
        if self.arrived is not None:
            self.arrived(place, reply)


_under_way: dict[asyncio.Task[Any], threading.Thread] = {}


def cancel_requests() -> None:
    """Cancel the requests under way in other threads, and wait up to five seconds until their connections are closed.

    A server that notices writes no texts for a run that has ended; the replies that have arrived are stored already.
    """
    for task, thread in list(_under_way.items()):
        with contextlib.suppress(RuntimeError):  # it has ended since
            task.get_loop().call_soon_threadsafe(task.cancel)
        thread.join(_LONGEST_CANCEL_S)


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run requests in an event loop of this thread, so that `cancel_requests` can end them.

    Raises:
        ProviderError: They were cancelled.
    """

    async def noted() -> None:
        task = asyncio.current_task()
        assert task is not None
        _under_way[task] = threading.current_thread()
        try:
            await work
        finally:
            del _under_way[task]

    try:
        asyncio.run(noted())
    except asyncio.CancelledError:
        raise ProviderError("requests to a language model were interrupted", do="Resume the run") from None
