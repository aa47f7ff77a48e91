"""Machines of a deployment as network namespaces, joined by a bridge, and attackers on the line between them.

The root namespace is on the bridge too. It represents the rest of the world, from which tests contact the front door.
This module needs root.
"""

import contextlib
import ctypes
import os
import shutil
import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.between import standing

NOTHING_BUT_LOOPBACK = ("unshare", "--net")
"""Words before a command that run it without a network, as compose's `network_mode: none` does."""

NAMES = "192.0.2.53"
"""Address at which there is no name server."""

_NETWORK = 0x40000000  # CLONE_NEWNET
_NAMESPACES, _SETTINGS = Path("/run/netns"), Path("/etc/netns")
_ALL, _IPV4, _IPV6 = 0x0003, 0x0800, 0x86DD  # ETH_P_ALL, and Ethernet's types
_NEIGHBOURS = (socket.IPPROTO_HOPOPTS, socket.IPPROTO_ICMPV6)
_SYN, _SYN_ACK = 0x02, 0x12


def missing():
    """Return why no machines can be made here; an empty string if they can."""
    if os.geteuid() != 0:
        return "only root makes network namespaces"
    try:
        Hosts(()).ended()
    except (OSError, subprocess.CalledProcessError):
        return "a bridge or `ip` is missing"
    return ""


class Hosts:
    """Machines, each with one network link.

    Args:
        names: Names of the machines; the first is at address 1.
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
        # All else is a way to nobody, on which attempts are seen; so is the server of names.
        self._ip("-n", machine, "neighbour", "add", self._at(253), "lladdr", "02:00:00:00:00:fd", "dev", "eth0")
        self._ip("-n", machine, "route", "add", "default", "via", self._at(253))
        (_SETTINGS / machine).mkdir(parents=True)
        (_SETTINGS / machine / "resolv.conf").write_text(f"nameserver {NAMES}\n")

    def ended(self):
        for machine in map(self._namespace, self._names):
            if (_NAMESPACES / machine).exists():
                self._ip("netns", "delete", machine)  # with it goes its link
            shutil.rmtree(_SETTINGS / machine, ignore_errors=True)
        self._ip("link", "delete", self._key)

    def address(self, name):
        return self._at(1 + self._names.index(name))

    def within(self, name):
        """Return the words before a command that run it on a machine."""
        return ("ip", "netns", "exec", self._namespace(name))

    def inside(self, name, work):
        """Call `work` on that machine and return the result; a socket that it makes stays on the machine."""

        def entered():
            with (_NAMESPACES / self._namespace(name)).open() as namespace:
                if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _NETWORK):
                    raise OSError(ctypes.get_errno(), "setns")
            return work()

        with ThreadPoolExecutor(1) as thread:  # it alone goes there, and ends
            return thread.submit(entered).result()

    def cut(self, name):
        """Unplug a machine's cable at the other end, so that all packets are lost without notice."""
        self._ip("link", "set", self._link(name), "down")

    def mend(self, name):
        self._ip("link", "set", self._link(name), "up")

    def close(self, name, of):
        """Block connections from one machine to another, as a firewall does; the other direction stays open."""
        self._ip("-n", self._namespace(name), "route", "add", "unreachable", f"{self.address(of)}/32")

    @property
    def outside(self):
        """The address of the rest of the world, which all machines can reach."""
        return self._at(254)

    @contextlib.contextmanager
    def outgoing(self, name):
        """Yield a set that collects the destinations of a machine's packets: (protocol such as "tcp", address, port).

        For TCP, only packets that open a connection count.
        """
        seen, ended = set(), threading.Event()
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL)) as link:
            link.bind((self._link(name), 0))
            link.settimeout(0.1)

            def watch():
                while True:
                    try:
                        frame, (*_, direction, _, _) = link.recvfrom(2**16)
                    except TimeoutError:
                        if ended.is_set():
                            return
                        continue
                    if direction != socket.PACKET_OUTGOING and (opened := _opened(frame)):
                        seen.add(opened)

            thread = threading.Thread(target=watch)
            thread.start()
            try:
                yield seen
            finally:
                ended.set()
                thread.join()

    def open_ports(self, name, of):
        """Return all TCP ports of the machine `of` to which the machine `name` can connect."""
        return self.inside(name, lambda: [port for port in range(1, 2**16) if _open(self.address(of), port)])

    @contextlib.contextmanager
    def between(self, name, of, port, serve, tls=None):
        """Redirect connections of this machine to that port of another to `serve`, a callback for asyncio's streams."""
        address = self.address(of)
        self._ip("-n", self._namespace(name), "address", "add", f"{address}/32", "dev", "lo")
        listener = self.inside(name, lambda: socket.create_server((address, port)))
        try:
            with listener, standing(listener, serve, tls):
                yield
        finally:
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


def _opened(frame):
    """Return the protocol, address and port of a frame that opens a connection; None for any other frame."""
    kind, packet = int.from_bytes(frame[12:14]), frame[14:]
    if kind == _IPV4:
        protocol, to, rest = packet[9], socket.inet_ntop(socket.AF_INET, packet[16:20]), packet[4 * (packet[0] & 15) :]
    elif kind == _IPV6 and packet[6] not in _NEIGHBOURS:
        protocol, to, rest = packet[6], socket.inet_ntop(socket.AF_INET6, packet[24:40]), packet[40:]
    else:
        return None
    if protocol == socket.IPPROTO_TCP and rest[13] & _SYN_ACK != _SYN:
        return None
    names = {socket.IPPROTO_TCP: "tcp", socket.IPPROTO_UDP: "udp"}
    return names.get(protocol, protocol), to, int.from_bytes(rest[2:4]) if protocol in names else 0


def _open(host, port):
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((host, port)) == 0
