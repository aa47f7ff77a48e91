"""A slow line between hospitals and coordinator: a TCP relay on this machine with a delay and a limited rate.

The relay needs neither root nor netem, which is missing in some kernels. It has no packet loss and no TCP slow start,
which on a real line adds a few round trips to each large message.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable, Iterator
from threading import Thread


class Line:
    """A slow line with a delay and a rate that can be changed while it is in use.

    Args:
        delay: Initial value of the attribute.
        spoil: Every `spoil`-th chunk of data is corrupted by one flipped bit; with 0, no chunk is.

    Attributes:
        delay: Duration of a round trip in seconds, half of it in each direction. Connecting takes another round trip.
        rate: Bytes per second in each direction, for all hospitals together, as on the coordinator's own line; None for
            no limit.
        passed: Bytes transferred so far, keyed by direction: "up" to the coordinator and "down" from it.
    """

    def __init__(self, delay: float = 0.0, *, spoil: int = 0) -> None:
        self.delay = delay
        self.rate: float | None = None
        self.passed = {"up": 0, "down": 0}
        self._free = {"up": 0.0, "down": 0.0}
        self._spoil = spoil
        self._pieces = itertools.count(1)

    @contextlib.contextmanager
    def between(self, near: tuple[str, int], far: tuple[str, int]) -> Iterator[None]:
        """Listen at `near` (host and port) and relay connections to `far`, for the duration of the context."""
        loop = asyncio.new_event_loop()
        listening = loop.run_until_complete(asyncio.start_server(self.to(*far), *near, backlog=1024))
        thread = Thread(target=loop.run_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            asyncio.run_coroutine_threadsafe(_ended(listening), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def to(self, host: str, port: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        """Return a callback for `asyncio.start_server` that relays a connection over this line to a host and port."""
        return lambda reader, writer: self._serve(reader, writer, (host, port))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, far: tuple[str, int]) -> None:
        await asyncio.sleep(self.delay)  # of TCP's own first round trip
        try:
            back, forth = await asyncio.open_connection(*far)
        except OSError:
            writer.close()
            return
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(self._pump(reader, forth, "up"), self._pump(back, writer, "down"))
        forth.close()
        writer.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: str) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        with contextlib.suppress(OSError):
            while data := await reader.read(2**16):
                self.passed[direction] += len(data)
                due = max(due, self._through(loop.time(), len(data), direction) + self.delay / 2)
                loop.call_at(due, writer.write, self._spoiled(data))
        loop.call_at(max(due, loop.time()), writer.close)

    def _spoiled(self, data: bytes) -> bytes:
        spoiled = self._spoil and next(self._pieces) % self._spoil == 0
        return data[:-1] + bytes([data[-1] ^ 1]) if spoiled else data

    def _through(self, now: float, size: int, direction: str) -> float:
        """Return the time at which these bytes will have been sent, after all earlier bytes in this direction."""
        if self.rate is None:
            return now
        self._free[direction] = max(now, self._free[direction]) + size / self.rate
        return self._free[direction]


async def _ended(listening: asyncio.Server) -> None:
    listening.close()
    while others := asyncio.all_tasks() - {asyncio.current_task()}:  # again: a last connection may begin meanwhile
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
