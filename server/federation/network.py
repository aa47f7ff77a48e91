"""Transport of parcels to the parties: one Protocol, and its implementation over Flower's Grid.

The same class serves in process (`simulations/federation/local_grid.py`), in Flower's simulation engine and in a
deployment; only the Grid differs. A party that is absent, slow or failed is missing from the result; `exchange.py`
decides what that means.
"""

import logging
import time
from collections.abc import Mapping
from typing import Protocol

from flwr.app import Message
from flwr.serverapp import Grid

from common import wire
from common.domain import PartyId
from common.errors import DropoutError, ProtocolError
from common.messages import Parcel
from common.parcels import contents, parcel_of
from common.phrases import NumberedParty, Phrase, join_phrases, list_parties
from common.system.progress import LONG

log = logging.getLogger("caucus.network")

POLL_SECONDS = 0.1
"""Seconds between two polls for replies. Flower's own `send_and_receive` sleeps three seconds."""
GRACE_SECONDS = 5.0
"""Additional seconds to wait for a reply whose first parts arrived before the timeout."""
_WAITING = "%d of %d hospitals %s; waiting up to %g s for %s"


class Network(Protocol):
    """Transport that sends parcels to the parties and returns the replies that arrived in time, keyed by party.

    `computing` is the time, in seconds, until a hospital replies by its schedule; it is added to the timeout.
    """

    def join(self, parcel: Parcel, parties: int, *, computing: float = 0.0) -> dict[PartyId, Parcel]:
        """Wait for this number of nodes, send the parcel to every node, and return the replies."""

    def exchange(self, parcels: Mapping[PartyId, Parcel], *, computing: float = 0.0) -> dict[PartyId, Parcel]:
        """Send each party its parcel, and return the replies."""


class FlowerNetwork:
    """The `Network` over Flower's Grid; a simulation ignores `computing`.

    Args:
        grid: Flower's Grid.
        timeout: Seconds to wait for nodes to appear and, in addition to the time in the hospitals' schedule, for the
            replies of one exchange.
        enrolled: Parties keyed by node, as the coordinator enrolled them; empty in a simulation. Any other node is
            assumed to be the party that it claims to be.
    """

    def __init__(self, grid: Grid, *, timeout: float, enrolled: Mapping[int, PartyId] | None = None) -> None:
        self._grid = grid
        self._timeout = timeout
        self._enrolled = dict(enrolled or {})
        self._nodes = {party: node for node, party in self._enrolled.items()}
        self._deadline = 0.0

    @property
    def seconds_left(self) -> float:
        """Number of seconds left for replies in this exchange."""
        return max(self._deadline - time.monotonic(), GRACE_SECONDS)

    def online(self) -> set[PartyId]:
        """Return the parties whose nodes are known and connected."""
        nodes = set(self._grid.get_node_ids())
        return {party for party, node in self._nodes.items() if node in nodes}

    def join(self, parcel: Parcel, parties: int, *, computing: float = 0.0) -> dict[PartyId, Parcel]:
        """Wait for this number of nodes, send the parcel to every node, and return the replies."""
        deadline, logged = time.monotonic() + self._timeout, -1
        while len(nodes := sorted(self._grid.get_node_ids())) < parties and time.monotonic() < deadline:
            if len(nodes) != logged:
                logged = len(nodes)
                missing = [p for node, p in self._enrolled.items() if node not in nodes and p < parties]
                awaited = list_parties(missing, " and ") if missing else "the others"
                log.info(_WAITING, logged, parties, "are connected", self._timeout, awaited)
            time.sleep(POLL_SECONDS)
        if not nodes:
            raise DropoutError("nodes", expected=parties, got=0, do="Start the parties' nodes, then run again")
        joined = {}
        for node, reply in self._send(dict.fromkeys(nodes, parcel), self._patience(computing)).items():
            try:
                party = self._enrolled[node] if node in self._enrolled else wire.sender(reply)
            except ProtocolError as error:
                log.warning("node %d: unreadable reply: %s", node, error.what)
                continue
            if party in joined:
                raise ProtocolError(
                    "parties", expected="one node for each", got=Phrase("two for ", NumberedParty(party))
                )
            self._nodes[party], joined[party] = node, reply
        return joined

    def exchange(self, parcels: Mapping[PartyId, Parcel], *, computing: float = 0.0) -> dict[PartyId, Parcel]:
        """Send each party its parcel, and return the replies."""
        party_of = {self._nodes[party]: party for party in parcels}
        to = {self._nodes[party]: parcel for party, parcel in parcels.items()}
        replies = self._send(to, self._patience(computing))
        return {party_of[node]: reply for node, reply in replies.items()}

    def _patience(self, computing: float) -> float:
        return self._timeout + computing if self._enrolled else self._timeout

    def _send(self, parcels: Mapping[int, Parcel], timeout: float) -> dict[int, Parcel]:
        messages = [
            Message(content, dst_node_id=node, message_type="query")
            for node, content in zip(parcels, contents(parcels.values()), strict=True)
        ]
        node_of = {
            message_id: message.metadata.dst_node_id
            for message_id, message in zip(self._grid.push_messages(messages), messages, strict=True)
        }
        replies: dict[int, Parcel] = {}
        waiting, pause, started = set(node_of), LONG, time.monotonic()
        self._deadline = started + timeout
        while waiting:
            late = time.monotonic() > self._deadline  # before, since a reply may take long while others arrive
            for reply in self._grid.pull_messages(sorted(waiting)):
                # An error's reply names a foreign source node; the message that it answers names the right one.
                message_id = reply.metadata.reply_to_message_id
                waiting.discard(message_id)
                if reply.has_error():
                    log.warning("%s: error %d", self._sender(node_of[message_id]), reply.error.code)
                    continue
                replies[node_of[message_id]] = parcel_of(reply.content)
            if not waiting or late:
                break
            if time.monotonic() > started + pause:
                pause *= 2
                awaited = join_phrases(
                    (self._sender(node) for sent, node in node_of.items() if sent in waiting), " and "
                )
                log.info(_WAITING, len(replies), len(node_of), "have answered", round(self.seconds_left), awaited)
            time.sleep(POLL_SECONDS)
        for message_id in waiting:
            log.warning("%s: no reply within %g s", self._sender(node_of[message_id]), timeout)
        return replies

    def _sender(self, node: int) -> object:
        """Return a node's name for log lines: its party, if that is known."""
        known = self._enrolled | {node: party for party, node in self._nodes.items()}
        return NumberedParty(known[node]) if node in known else f"node {node}"
