"""Programs between a hospital and its coordinator: a proxy that forwards or intercepts TLS, a bad line, a listener.

Each is a callback for asyncio's streams, served by `standing`.
"""

import asyncio
import base64
import contextlib
import itertools
import socket
from concurrent.futures import Future
from threading import Thread


@contextlib.contextmanager
def standing(listener, serve, tls=None):
    """Serve the connections that this socket accepts, for the duration of the context."""
    ended = Future()

    async def stand():
        server = await asyncio.start_server(serve, sock=listener, ssl=tls)
        await asyncio.wrap_future(ended)
        server.close()  # and not waited for: connections last as long as a node

    thread = Thread(target=asyncio.run, args=(stand(),))
    thread.start()
    try:
        yield
    finally:
        ended.set_result(None)
        thread.join()


def listening(heard):
    """Return a callback that answers each connection with status 200 and appends the received bytes to `heard`."""

    async def serve(reader, writer):
        with contextlib.suppress(OSError):
            heard.append(await reader.read(2**16))
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    return serve


class Proxy:
    """A proxy for HTTP CONNECT.

    Args:
        login: USER:PASSWORD that the proxy requires; an empty string for no login.
        only: host:port that the proxy permits; None permits all.
        opens: Initial value of the attribute.

    Attributes:
        opens: TLS context with which the proxy acts as the coordinator within the tunnel; with None, it only forwards
            bytes.
        asked: The first line of each request, and the status of the proxy's answer.
        opened: Content of the TLS connections that the proxy intercepted; empty if TLS was refused.
    """

    def __init__(self, login="", *, only=None, opens=None):
        self._expected = f"Basic {base64.b64encode(login.encode()).decode()}" if login else None
        self._only, self.opens = only, opens
        self.asked, self.opened = [], []

    @contextlib.contextmanager
    def at(self, host="127.0.0.1", port=0):
        """Serve the proxy at this address; yield its URL."""
        with socket.create_server((host, port)) as listener, standing(listener, self.serve):
            yield f"http://{host}:{listener.getsockname()[1]}"

    async def serve(self, reader, writer):
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            there = None
            first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            target = first.split()[1]
            status = self._refusal(target, headers.get("proxy-authorization"))
            if not status and not self.opens:
                host, _, port = target.rpartition(":")
                try:
                    there = await asyncio.open_connection(host.strip("[]"), int(port))
                except OSError:
                    status = "502 Bad Gateway"
            self.asked.append((first, status[:3] or "200"))
            length = "Content-Length: 0\r\n" if status else ""
            writer.write(f"HTTP/1.1 {status or '200 Connection established'}\r\n{length}\r\n".encode())
            if there:
                await asyncio.gather(_piped(reader, there[1]), _piped(there[0], writer))
            elif not status:
                await writer.start_tls(self.opens)
                self.opened.append(await reader.read(2**16))
        writer.close()

    def _refusal(self, target, given):
        if self._expected not in {None, given}:
            return "407 Proxy Authentication Required"
        return "" if self._only in {None, target} else "403 Forbidden"


class Line:
    """A slow or faulty line to a host and port; it needs neither root nor netem, which is missing in some kernels.

    Args:
        host: Host at its far end.
        port: Port at its far end.
        delay: Duration of a round trip in seconds, half of it in each direction. Connecting takes another round trip.
        spoil: Every `spoil`-th chunk of data is corrupted by one flipped bit; with 0, no chunk is.
    """

    def __init__(self, host, port, *, delay=0.0, spoil=0):
        self._far, self._delay, self._spoil = (host, port), delay, spoil
        self._chunks = itertools.count(1)

    async def serve(self, reader, writer):
        await asyncio.sleep(self._delay)
        try:
            back, forth = await asyncio.open_connection(*self._far)
        except OSError:
            writer.close()
            return
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(self._carried(reader, forth), self._carried(back, writer))
        forth.close()
        writer.close()

    async def _carried(self, reader, writer):
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            while chunk := await reader.read(2**16):
                if self._spoil and next(self._chunks) % self._spoil == 0:
                    chunk = chunk[:-1] + bytes([chunk[-1] ^ 1])
                loop.call_later(self._delay / 2, writer.write, chunk)
        await asyncio.sleep(self._delay / 2)
        writer.close()


async def _piped(reader, writer):
    with contextlib.suppress(OSError):
        while piece := await reader.read(2**16):
            writer.write(piece)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()
