"""Machines of a deployment as network namespaces, joined by a bridge, and attackers on the line between them.

The root namespace is on the bridge too: it is the rest of the world, from where tests ask the front door. Needs root.
"""

import asyncio
import contextlib
import ctypes
import os
import socket
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Thread

NOTHING_BUT_LOOPBACK = ("unshare", "--net")
"""Words before a command that shall have no network, as compose's `network_mode: none`."""

_NETWORK = 0x40000000  # CLONE_NEWNET
_NAMESPACES = Path("/run/netns")


def missing():
    """Why no machines can be made here, or an empty string."""
    if os.geteuid() != 0:
        return "only root makes network namespaces"
    try:
        Hosts(()).ended()
    except (OSError, subprocess.CalledProcessError):
        return "a bridge or `ip` is missing"
    return ""


class Hosts:
    """So many machines, each with one link.

    Args:
        names: Of the machines; the first is at address 1.
    """

    def __init__(self, names):
        self._names = tuple(names)
        self._key = f"cc{os.getpid()}"
        self._ip("link", "add", self._key, "type", "bridge")
        try:
            self._ip("address", "add", f"{self._at(254)}/24", "dev", self._key)
            self._ip("link", "set", self._key, "up")
            for name in self._names:
                self._make(name)
        except BaseException:
            self.ended()
            raise

    def _make(self, name):
        machine, link = self._namespace(name), self._link(name)
        self._ip("netns", "add", machine)
        self._ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", machine)
        self._ip("link", "set", link, "master", self._key, "up")
        self._ip("-n", machine, "link", "set", "lo", "up")
        self._ip("-n", machine, "address", "add", f"{self.address(name)}/24", "dev", "eth0")
        self._ip("-n", machine, "link", "set", "eth0", "up")

    def ended(self):
        for machine in map(self._namespace, self._names):
            if (_NAMESPACES / machine).exists():
                self._ip("netns", "delete", machine)  # with it goes its link
        self._ip("link", "delete", self._key)

    def address(self, name):
        return self._at(1 + self._names.index(name))

    def within(self, name):
        """Words that bring a command to a machine."""
        return ("ip", "netns", "exec", self._namespace(name))

    def inside(self, name, work):
        """What `work` returns, called on that machine; a socket that it makes stays there."""

        def entered():
            with (_NAMESPACES / self._namespace(name)).open() as namespace:
                if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _NETWORK):
                    raise OSError(ctypes.get_errno(), "setns")
            return work()

        with ThreadPoolExecutor(1) as thread:  # it alone goes there, and ends
            return thread.submit(entered).result()

    def cut(self, name):
        """Pull the cable at the other end: without notice, all packets are lost."""
        self._ip("link", "set", self._link(name), "down")

    def mend(self, name):
        self._ip("link", "set", self._link(name), "up")

    def open_ports(self, name, of):
        """All TCP ports of one machine that another can connect to."""
        return self.inside(name, lambda: [port for port in range(1, 2**16) if _open(self.address(of), port)])

    @contextlib.contextmanager
    def between(self, name, of, port, serve, tls=None):
        """Whatever this machine sends to that port of another goes to `serve`, a callback of asyncio's streams."""
        address = self.address(of)
        self._ip("-n", self._namespace(name), "address", "add", f"{address}/32", "dev", "lo")
        listener = self.inside(name, lambda: socket.create_server((address, port)))
        ended = Future()

        async def stand():
            async with await asyncio.start_server(serve, sock=listener, ssl=tls):
                await asyncio.wrap_future(ended)

        thread = Thread(target=asyncio.run, args=(stand(),))
        thread.start()
        try:
            yield
        finally:
            ended.set_result(None)
            thread.join()
            self._ip("-n", self._namespace(name), "address", "delete", f"{address}/32", "dev", "lo")

    def _at(self, number):
        return f"10.203.{os.getpid() % 256}.{number}"

    def _namespace(self, name):
        return f"{self._key}-{name}"

    def _link(self, name):
        return f"{self._key}.{self._names.index(name)}"

    @staticmethod
    def _ip(*arguments):
        subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=30)


def listening(heard):
    """For `Hosts.between`: answers as if all were well, and keeps the received messages."""

    async def serve(reader, writer):
        with contextlib.suppress(OSError):
            heard.append(await reader.read(2**16))
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    return serve


def _open(host, port):
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((host, port)) == 0
