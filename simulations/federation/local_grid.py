"""Flower's Grid within one process: the same apps with real serialisation, but without Ray or sockets.

Every message is converted to Flower's protobuf bytes and back in both directions, so that code that works here also
works over a network. A bulk array for several nodes is converted only once, since with a thousand parties, copying
would take most of the time of a round. `workers` is the number of threads that serve nodes. A test can script faults: a
fault receives each message and may drop, alter or repeat the message.
"""

import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from threading import Lock

from flwr.app import ArrayRecord, Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid

from common.parcels import HANDLER_RAISED
from server.flower.grid import (
    Run,
    become_coordinator,
    message_bytes,
    message_of,
    record_bytes,
    record_of,
    set_id,
)

Fault = Callable[[int, Message], Iterable[Message]]
"""Function that maps (partition, message) to the messages that arrive in its place: none, one or several."""

BULK = "bulk"
"""Name of the array record in a message that contains a large bulk array (`common/parcels.py`)."""


def deliver(_: int, message: Message) -> Iterable[Message]:
    """Return the message unchanged; this is the `Fault` of a connection without faults."""
    return (message,)


class LocalGrid(Grid):
    """A Grid with one node per party; a message that is pushed to a node runs the node's client app.

    Args:
        client_app: The ClientApp of every node.
        parties: Number of nodes.
        on_request: `Fault` that is applied to each message to a party.
        on_reply: `Fault` that is applied to each message from a party.
        workers: Number of messages that are delivered concurrently.

    Attributes:
        bytes_sent: Number of serialised bytes sent to all parties so far, to within eight bytes per message.
        bytes_received: Number of serialised bytes received from all parties so far.
    """

    def __init__(
        self,
        client_app: ClientApp,
        parties: int,
        *,
        on_request: Fault = deliver,
        on_reply: Fault = deliver,
        workers: int = 1,
    ) -> None:
        become_coordinator()
        self._client_app = client_app
        self._on_request = on_request
        self._on_reply = on_reply
        self._parties = parties
        self._workers = workers
        self._run = Run.create_empty(run_id=1)
        self._replies: dict[str, Message] = {}
        self.bytes_sent = 0
        self.bytes_received = 0

    def set_run(self, run: Run) -> None:
        """Set the run, as Flower's `Grid` does."""
        self._run = run

    @property
    def run(self) -> Run:
        """The run, as in Flower's `Grid`."""
        return self._run

    def create_message(
        self, content: RecordDict, message_type: str, dst_node_id: int, group_id: str, ttl: float | None = None
    ) -> Message:
        """Return a new message, as Flower's `Grid` does."""
        return Message(content, dst_node_id, message_type, group_id=group_id, ttl=ttl)

    def get_node_ids(self) -> Iterable[int]:
        """Return the node IDs, which start at 1; 0 is not a node."""
        return range(1, self._parties + 1)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Deliver each message at once, and store its reply for `pull_messages`; return the IDs of the messages."""
        bulk = _SharedBulk()
        with ThreadPoolExecutor(self._workers) as threads:
            delivered = list(threads.map(lambda message: self._deliver(message, bulk), messages))
        for message_id, reply, sent, received in delivered:
            self.bytes_sent += sent
            self.bytes_received += received
            if reply is not None:
                self._replies[message_id] = reply
        return [message_id for message_id, *_ in delivered]

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Return the replies to these messages; omit replies that were lost or already pulled."""
        return [self._replies.pop(message_id) for message_id in message_ids if message_id in self._replies]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Deliver the messages and return the replies, without waiting, as all nodes are in this process."""
        del timeout
        return self.pull_messages(self.push_messages(messages))

    def _deliver(self, message: Message, bulk: "_SharedBulk") -> tuple[str, Message | None, int, int]:
        """Deliver a message; return its ID, the last reply or None, the bytes sent and the bytes received."""
        message_id = uuid.uuid4().hex
        set_id(message, message_id)
        partition = message.metadata.dst_node_id - 1
        arrived, sent = bulk.transported(message)
        reply, received = None, 0
        for arriving in self._on_request(partition, arrived):
            for leaving in self._on_reply(partition, self._answer(partition, arriving)):
                back = message_bytes(leaving)
                received += len(back)
                reply = message_of(back)
        return message_id, reply, sent, received

    def _answer(self, partition: int, message: Message) -> Message:
        context = Context(
            run_id=1,
            node_id=message.metadata.dst_node_id,
            node_config={"partition-id": partition, "num-partitions": self._parties},
            state=RecordDict(),
            run_config={},
        )
        try:
            return self._client_app(message, context)
        except Exception as error:  # noqa: BLE001 Flower reports any exception of a handler as this error
            return Message(Error(HANDLER_RAISED, type(error).__name__), reply_to=message)


class _SharedBulk:
    """Transport of messages; a bulk array is serialised once if consecutive messages contain the same array."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sent: ArrayRecord | None = None
        self._arrived, self._size = ArrayRecord(), 0

    def transported(self, message: Message) -> tuple[Message, int]:
        """Return the message as it arrives, and its size in bytes."""
        content = message.content
        if BULK not in content:
            data = message_bytes(message)
            return message_of(data), len(data)
        bulk = content.array_records[BULK]
        with self._lock:
            if bulk is not self._sent:
                data = record_bytes(RecordDict({BULK: bulk}))
                self._arrived = record_of(data).array_records[BULK]
                self._sent, self._size = bulk, len(data)
            arrived_bulk, size = self._arrived, self._size
        del content[BULK]
        data = message_bytes(message)
        content[BULK] = bulk
        arrived = message_of(data)
        arrived.content[BULK] = ArrayRecord({name: copy(array) for name, array in arrived_bulk.items()})
        return arrived, len(data) + size
