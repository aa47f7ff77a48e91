"""The socket between a hospital's relay and its party service: gRPC, with one parcel in reply to each request.

This module is separate so that the relay loads neither torch nor any code that reads records.
"""

import logging
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import grpc

from common import messages as m
from common import wire
from common.errors import ConfigError, ProtocolError, TooLargeError
from common.secagg.messages import KEY_BYTES

log = logging.getLogger("caucus.relay")

SOCKET = "unix:run/party.sock"
"""Address of a deployed service, relative to the hospital's folder, as the path of a Unix socket is limited to 107
characters."""
READY = "run/ready"
"""File that the service makes once it has started, which may be hours after the socket; relative to the folder."""
SOCKET_NAME = "CAUCUS_PARTY_SOCKET"
"""Environment variable from which the relay takes the address of its own party's service, never from a message."""
PATIENCE = 60.0
"""Seconds that a message waits for a service that is restarting or suspended, before the message counts as lost."""
_RECONNECT = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 500)]
"""Waits between attempts to reach a service that was down; gRPC's default is up to two minutes."""

_METHOD = "/caucus.Party/Handle"
_SIZE = [("grpc.max_receive_message_length", m.LARGEST_ENVELOPE + m.LARGEST_BULK + 2**10)]
"""Limit beyond which neither side reads a message, in bytes: that of a parcel."""


class ParcelAnswerer(Protocol):
    """Interface of an object that replies to parcels: the service itself, or a channel to it."""

    def handle(self, parcel: m.Parcel) -> m.Parcel:
        """Return the reply to one parcel; no message of a coordinator, however malformed, makes it raise an error."""


class Channel:
    """A party service in another process.

    Args:
        address: Address of the service's socket, `unix:PATH`.
        partition: Index of a simulated party; 0 in a deployment.
        patience: Seconds to wait until the service is reachable; the time for an answer is not limited.
    """

    def __init__(self, address: str, partition: int, *, patience: float = PATIENCE) -> None:
        # Lasting: closing one takes 0.2 s. It finds a service that was restarted again (`_RECONNECT`).
        self._channel = grpc.insecure_channel(address, options=_SIZE + _RECONNECT)
        self._partition = partition
        self._patience = patience

    def handle(self, parcel: m.Parcel) -> m.Parcel:
        """Pass one parcel to the service and return its reply; refuse in its place a parcel that is too large.

        Raises:
            ProtocolError: No service answers, or the service does not serve this partition.
        """
        try:
            wire.check_size(parcel)
        except TooLargeError as error:
            log.warning("a message is refused: %s", error)
            refusal = m.Refusal(m.Reason.MALFORMED)
            return wire.pack(m.Envelope(run="", party=self._partition, plan_digest=bytes(KEY_BYTES), body=refusal))
        ready = grpc.channel_ready_future(self._channel)
        try:
            ready.result(timeout=self._patience)
            reply: bytes = self._channel.unary_unary(_METHOD, None, None)(wire.pack_parcel(parcel, self._partition))
        except (grpc.RpcError, grpc.FutureTimeoutError):
            ready.cancel()  # else it watches the channel as long as that lasts
            raise ProtocolError("party service", expected="an answer", got="none") from None
        return wire.unpack_parcel(reply)[0]

    def close(self) -> None:
        """Close the connection; a process must not have one open when it forks."""
        self._channel.close()


def answers(address: str, patience: float) -> bool:
    """Return whether a party service responds on this socket (`unix:PATH`) within this number of seconds."""
    try:
        with grpc.insecure_channel(address) as channel:
            grpc.channel_ready_future(channel).result(timeout=patience)
    except grpc.FutureTimeoutError:
        return False
    return True


def serve_socket(parties: Mapping[int, ParcelAnswerer], address: str, *, shared: bool = False) -> grpc.Server:
    """Serve parties on a Unix socket (`unix:/path`) until the server is stopped.

    Args:
        parties: The parties, keyed by partition; a hospital has one, with key 0.
        address: Address to listen at. An address other than a Unix socket would need mutual TLS, which is not
            implemented here.
        shared: Whether the socket's group, which is the relay's, may connect too.

    Returns:
        The started server.
    """
    if not address.startswith("unix:"):
        raise ConfigError("address of the party service", expected="unix:PATH", got=address)

    def handle(data: bytes, context: grpc.ServicerContext) -> bytes:
        try:
            parcel, partition = wire.unpack_parcel(data)
            party = parties[partition]
        except (ProtocolError, KeyError):
            # An exception's own text would travel.
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not a parcel for a party here")
        return wire.pack_parcel(party.handle(parcel), partition)

    service, method = _METHOD.strip("/").split("/")
    server = grpc.server(ThreadPoolExecutor(4), options=_SIZE)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(service, {method: grpc.unary_unary_rpc_method_handler(handle)}),)
    )
    # The socket is born closed to all other users of the machine.
    mask = os.umask(0o117 if shared else 0o177)
    try:
        server.add_insecure_port(address)
    finally:
        os.umask(mask)
    server.start()
    return server
