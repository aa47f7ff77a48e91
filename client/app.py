"""Flower's ClientApp: a thin relay between the coordinator and this party's own service.

This is code that the coordinator pushes, so it is trusted with nothing: it sees the parcels that the coordinator may
see and has no access to records, keys or ledger.
"""

import logging
import os
from collections.abc import Callable

import grpc
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.constant import ErrorCode

from client.service import METHOD, UNLIMITED, Party
from common import wire
from common.errors import CaucusError, ConfigError, ProtocolError
from common.messages import Parcel

log = logging.getLogger("caucus.relay")

SOCKET = "CAUCUS_PARTY_SOCKET"
"""Environment variable at the party: where its own service listens. Never taken from a message."""

PATIENCE = 60.0
"""Seconds that a service may take to come back, restarted or frozen, before a message to it counts as lost."""
_RECONNECT = [("grpc.max_reconnect_backoff_ms", 2000)]


class Channel:
    """A party service in another process.

    Args:
        address: `unix:PATH`.
        partition: Which of several simulated parties; 0 in a deployment.
        patience: Seconds to wait for the service to be there; an answer may take as long as it takes.
    """

    def __init__(self, address: str, partition: int, *, patience: float) -> None:
        self._address = address
        self._partition = partition
        self._patience = patience

    def handle(self, parcel: Parcel) -> Parcel:
        """Pass one parcel on and bring the answer back.

        Raises:
            ProtocolError: There is no service, or none that knows this partition.
        """
        try:
            # A connection for each call: Flower's client processes serve one message, and a lasting channel would wait
            # up to two minutes before it tried again to reach a service that was restarted.
            with grpc.insecure_channel(self._address, options=UNLIMITED + _RECONNECT) as channel:
                grpc.channel_ready_future(channel).result(timeout=self._patience)
                reply: bytes = channel.unary_unary(METHOD, None, None)(wire.pack_parcel(parcel, self._partition))
        except (grpc.RpcError, grpc.FutureTimeoutError):
            raise ProtocolError("party service", expected="an answer", got="none") from None
        return wire.unpack_parcel(reply)[0]


def relay(connect: Callable[[Context], Party]) -> ClientApp:
    """A ClientApp that hands every parcel to the party that `connect` finds for a node."""
    client_app = ClientApp()

    @client_app.query()
    def handle(message: Message, context: Context) -> Message:
        try:
            answer = connect(context).handle(_parcel(message.content))
        except Exception as error:  # noqa: BLE001 Flower would send its text to the coordinator
            log.warning(
                "no answer from the party service: %s", error if isinstance(error, CaucusError) else type(error)
            )
            return Message(Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION), reply_to=message)
        content = RecordDict(
            {
                "envelope": ConfigRecord({"bytes": answer.envelope}),
                "bulk": ArrayRecord({"bytes": Array("uint8", (len(answer.bulk),), "raw", answer.bulk)}),
            }
        )
        return Message(content, reply_to=message)

    return client_app


def _parcel(content: RecordDict) -> Parcel:
    envelope = content.config_records["envelope"]["bytes"]
    assert isinstance(envelope, bytes)
    return Parcel(envelope, content.array_records["bulk"]["bytes"].data)


def _own_service(context: Context) -> Party:
    address = os.environ.get(SOCKET)
    if not address:
        raise ConfigError(SOCKET, expected="unix:PATH of this party's service", do="Set it where the node starts")
    return Channel(address, int(context.node_config.get("partition-id", 0)), patience=PATIENCE)


app = relay(_own_service)
