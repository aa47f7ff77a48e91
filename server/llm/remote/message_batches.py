"""Message Batches: all requests of a round at once, at half the price, within a day.

A batch is noted on disk with the keys of its requests, so that a run that was killed while waiting collects its results
instead of paying again. (If the run is killed after the server has received a batch but before the note is written, the
batch is lost.)
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.errors import ProviderError
from common.system.files import write_atomic
from common.validate import positive
from server.llm.base import NO_REPLY, Arrived, Reply, Request
from server.llm.remote.chat import ChatReply, MalformedError, read_reply, with_usage, worst
from server.llm.remote.provider import Remote
from server.llm.remote.retry import UnansweredError, ask_with_retries
from server.llm.spending import Spending, Usage

if TYPE_CHECKING:
    from server.llm.remote.anthropic import Messages

_MOST_REQUESTS = 10_000  # of one batch: the API's bound is ten times higher, this one keeps notes and memory small
_DAY = 86_400.0  # seconds that a batch may take


class MessageBatches:
    """A remote model that is used through Message Batches.

    Args:
        chat: Protocol of the model's server, with the model's settings.
        poll: Seconds between two requests for the status of a batch.
        folder: Folder for notes on batches in progress; None writes no notes.
        spending: Account of the run; None uses a separate account without a cap.
    """

    remote = True
    declines = frozenset[str]()

    def __init__(self, *, chat: "Messages", poll: float, folder: Path | None, spending: Spending | None) -> None:
        self._spending = spending or Spending()
        one_by_one = Remote(chat=chat, spending=self._spending)
        positive(poll=poll)
        settings = chat.settings
        self.name, self.identity = one_by_one.name, one_by_one.identity
        self.check, self.estimate = one_by_one.check, one_by_one.estimate
        self._chat, self._poll = chat, poll
        self._render, self._max_tokens, self._clock = settings.prompts.render, settings.max_tokens, settings.clock
        self._price = settings.token_price()
        self._note_file = folder / "message_batches.json" if folder else None
        self._notes: dict[str, list[str]] = {}  # the keys of the requests of each batch in progress
        if self._note_file is not None and self._note_file.exists():
            self._notes = json.loads(self._note_file.read_text(encoding="utf-8"))

    def generate(self, requests: Sequence[Request], *, arrived: Arrived | None = None) -> list[Reply]:
        """Generate the replies (`server.llm.base.Provider`); they arrive when their batch has ended.

        Raises:
            ProviderError: The service rejects a call, or the run's cap on spending is reached.
        """
        if not requests:
            return []
        keys = [request.key(self.identity) for request in requests]
        by_key = dict(zip(keys, requests, strict=True))
        replies: dict[str, Reply] = {}

        def deliver(key: str, reply: Reply) -> None:
            replies[key] = reply
            if arrived is not None:
                for place in (place for place, other_key in enumerate(keys) if other_key == key):
                    arrived(place, reply)

        asyncio.run(self._all(by_key, deliver))
        return [replies.get(key, NO_REPLY) for key in keys]

    async def _all(self, by_key: Mapping[str, Request], deliver: Callable[[str, Reply], None]) -> None:
        remaining = dict(by_key)
        async with self._chat.client() as client:
            for batch, keys in list(self._notes.items()):
                if remaining.keys() & set(keys):
                    await self._collect(client, batch, remaining, {}, deliver)
            while remaining:
                reserved = await self._reserve(remaining)
                sent = list(reserved)
                try:
                    created = await self._answer(partial(self._send, client, sent, by_key))
                    self._notes[created.id] = sent
                    self._keep_notes()
                    await self._collect(client, created.id, remaining, reserved, deliver)
                finally:
                    for most in reserved.values():
                        self._spending.settle(self.name, most, None, self._price)
                for key in sent:
                    remaining.pop(key, None)

    async def _reserve(self, left: Mapping[str, Request]) -> dict[str, Usage]:
        """Reserve the cost of as many requests as the cap allows; return each one's maximum usage, or raise if none."""
        reserved: dict[str, Usage] = {}
        for key, request in list(left.items())[:_MOST_REQUESTS]:
            most = worst(self._render(request), self._max_tokens)
            while (verdict := self._spending.hold(most, self._price)) == "wait" and not reserved:
                await self._clock.sleep(self._poll)
            if verdict == "held":
                reserved[key] = most
            elif reserved:
                break
            else:
                raise self._spending.exhausted(self.name, most, self._price)
        return reserved

    async def _send(self, client: Any, keys: list[str], by_key: Mapping[str, Request]) -> Any:
        bodies = [{"custom_id": key, "params": self._chat.parameters(*self._render(by_key[key]))} for key in keys]
        return await client.messages.batches.create(requests=bodies)

    async def _collect(
        self,
        client: Any,
        batch: str,
        left: dict[str, Request],
        reservations: dict[str, Usage],
        deliver: Callable[[str, Reply], None],
    ) -> None:
        """Wait for a batch to end, then read its results and record the cost of all, including unwanted ones."""
        while (await self._answer(partial(client.messages.batches.retrieve, batch))).processing_status != "ended":
            await self._clock.sleep(self._poll)
        for line in await self._answer(partial(self._results, client, batch)):
            key, request = line.custom_id, left.pop(line.custom_id, None)
            completion = self._read(line.result)
            if request is not None and completion.text:
                completion = with_usage(completion, self._render(request), request, self._max_tokens)
            self._spending.settle(self.name, reservations.pop(key, None), completion.usage, self._price)
            if request is not None:
                deliver(key, read_reply(completion, self._render(request), request))
        del self._notes[batch]
        self._keep_notes()

    async def _results(self, client: Any, batch: str) -> list[Any]:
        return [line async for line in await client.messages.batches.results(batch)]

    def _read(self, result: Any) -> ChatReply:
        """Return the completion in one result; its text is lost if the request failed, expired or was cancelled."""
        if result.type != "succeeded":
            return ChatReply(text="", usage=Usage(), loss="failed")
        try:
            return self._chat.read(result.message)
        except MalformedError:
            return ChatReply(text="", usage=Usage(), loss="malformed")

    async def _answer(self, ask: Callable[[], Any]) -> Any:
        """Make one call to the service, with the usual retries after temporary failures, and return the answer."""
        most, clock = self._chat.settings.retries, self._chat.settings.clock
        try:
            return await ask_with_retries(ask, errors=self._chat.errors, most=most, clock=clock, patience=_DAY)
        except UnansweredError as error:
            raise ProviderError(
                f"the language model {self.name} takes no batch",
                expected="a batch that ends",
                got=error.failure.summary,
                where=self._chat.settings.model,
                do=error.failure.advice(self.name),
            ) from error.cause

    def _keep_notes(self) -> None:
        if self._note_file is not None:
            write_atomic(self._note_file, json.dumps(self._notes).encode())
