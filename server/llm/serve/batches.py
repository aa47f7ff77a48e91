"""Batches for an engine: what arrives while the engine works waits, and is then one batch.

submit -> waiting --- the engine is free, and no other job came for a moment ---> one call of the engine -> futures
             |
             cancelled: its client has left, and the engine never sees it
"""

import logging
import queue
import threading
from concurrent.futures import Future

from common.errors import CaucusError
from server.llm.engines.base import Continuations, Engine, Job

log = logging.getLogger("caucus.llm")

MOST = 64
"""Maximum number of jobs in one batch; jobs that wait behind a batch wait for its longest text."""
_MOMENT_S = 0.02  # clients that were answered together ask again together, within milliseconds

Reply = Future[list[int]]


class Batches:
    """A thread that has an engine to itself.

    Args:
        engine: The engine; only this thread calls it.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: queue.SimpleQueue[tuple[Job, Reply]] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True, name="engine").start()

    def submit(self, job: Job) -> Reply:
        """Let a job of one continuation wait for the engine; return the future of its token ids.

        The future raises what the engine raised for its batch. Cancelling it takes a waiting job out.
        """
        reply = Reply()
        self._waiting.put((job, reply))
        return reply

    def _work(self) -> None:
        while True:
            batch = [(job, reply) for job, reply in self._next() if reply.set_running_or_notify_cancel()]
            if batch:
                self._sample(batch)

    def _next(self) -> list[tuple[Job, Reply]]:
        """Wait for a job; return it with those that wait behind it, or come within a moment of one another."""
        batch = [self._waiting.get()]
        while len(batch) < MOST:
            try:
                batch.append(self._waiting.get(timeout=_MOMENT_S))
            except queue.Empty:
                break
        return batch

    def _sample(self, batch: list[tuple[Job, Reply]]) -> None:
        def done(place: int, written: Continuations) -> None:
            batch[place][1].set_result(written[0])

        try:
            self._engine.sample([job for job, _ in batch], done)
        except Exception as error:  # noqa: BLE001 each reply raises it again
            # Only our own messages are sure to hold no prompt.
            log.warning("%d jobs failed: %s", len(batch), error if isinstance(error, CaucusError) else type(error))
            for _, reply in batch:
                if not reply.done():
                    reply.set_exception(error)
