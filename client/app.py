"""Flower's ClientApp: a thin relay between the coordinator and this party's own service.

The coordinator pushes this code, so it is not trusted: it sees only parcels that the coordinator may see, and cannot
access records, keys or the ledger.
"""

import logging
import os
from collections.abc import Callable
from functools import cache

from flwr.app import Context, Error, Message
from flwr.clientapp import ClientApp

from client.channel import SOCKET_NAME, Channel, ParcelAnswerer
from common.errors import CaucusError, ConfigError
from common.parcels import HANDLER_RAISED, contents, parcel_of

log = logging.getLogger("caucus.relay")


def relay(connect: Callable[[Context], ParcelAnswerer]) -> ClientApp:
    """Return a ClientApp that passes each parcel to the party that `connect` returns for the node's context."""
    client_app = ClientApp()

    @client_app.query()
    def handle(message: Message, context: Context) -> Message:
        try:
            answer = connect(context).handle(parcel_of(message.content))
        except Exception as error:  # noqa: BLE001 Flower would send its text to the coordinator
            log.warning(
                "no answer from the party service: %s", error if isinstance(error, CaucusError) else type(error)
            )
            return Message(Error(HANDLER_RAISED), reply_to=message)
        (content,) = contents([answer])
        return Message(content, reply_to=message)

    return client_app


def _own_service(context: Context) -> ParcelAnswerer:
    address = os.environ.get(SOCKET_NAME)
    if not address:
        raise ConfigError(SOCKET_NAME, expected="unix:PATH of this party's service", do="Set it where the node starts")
    return _channel(address, int(context.node_config.get("partition-id", 0)))


_channel = cache(Channel)
"""Return the one long-lived channel to a party's service."""


app = relay(_own_service)
