"""Flower's Grid: its waits in a deployed run, and the parts of which a Grid in one process is made.

`simulations/federation/local_grid.py` is that Grid: a sender, a run, and messages as bytes.
"""

from collections.abc import Callable

from flwr.app import Message, RecordDict
from flwr.common.constant import SUPERLINK_NODE_ID
from flwr.common.serde import message_from_proto, message_to_proto, recorddict_from_proto, recorddict_to_proto
from flwr.proto.message_pb2 import Message as ProtoMessage
from flwr.proto.recorddict_pb2 import RecordDict as ProtoRecordDict
from flwr.supercore.inflatable.inflatable_utils import pull_objects
from flwr.supercore.run import Run as Run  # noqa: PLC0414 for a Grid in one process
from flwr.supercore.task_identity import TaskIdentity

PART_SECONDS = 0.05
"""Seconds before a missing part of a reply is requested again. The wait doubles each time."""


def ask_for_parts_sooner(seconds_left: Callable[[], float]) -> None:
    """Shorten the waits of Flower's Grid in this process.

    The Grid sees a reply as soon as the node begins to send it. Flower waits a second before it requests missing parts
    again and, if the network fails meanwhile, continues for up to two hours; here it stops when no seconds are left for
    the exchange.
    """
    from flwr.superlink.grid import http_grid

    def pulled(object_ids: list[str], pull_object_fn: Callable[[str], bytes]) -> dict[str, bytes]:
        return pull_objects(object_ids, pull_object_fn, initial_backoff=PART_SECONDS, max_time=seconds_left())

    http_grid.pull_objects = pulled  # type: ignore[assignment, attr-defined]


def become_coordinator() -> None:
    """Make this process the sender of its messages, by setting `TaskIdentity`, from which Flower reads the sender."""
    TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, SUPERLINK_NODE_ID


def set_id(message: Message, message_id: str) -> None:
    """Set a message's id to the one that Flower's own Grid would assign to it."""
    message.metadata.__dict__["_message_id"] = message_id


def message_bytes(message: Message) -> bytes:
    """Return a message, including its content, as Flower's protobuf bytes."""
    return message_to_proto(message).SerializeToString()


def message_of(data: bytes) -> Message:
    """Return the message from the bytes that `message_bytes` returned."""
    return message_from_proto(ProtoMessage.FromString(data))


def record_bytes(record: RecordDict) -> bytes:
    """Return a message's content as Flower's protobuf bytes."""
    return recorddict_to_proto(record).SerializeToString()


def record_of(data: bytes) -> RecordDict:
    """Return the record from the bytes that `record_bytes` returned."""
    return recorddict_from_proto(ProtoRecordDict.FromString(data))
