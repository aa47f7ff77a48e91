"""Checks whether SuperLink knows the key of this hospital's node, without changing anything there.

The check makes one signed call that SuperLink must refuse: to activate this node with heartbeats that are zero seconds
apart. SuperLink first looks up the key and then refuses the interval, before it activates anything, so a SuperNode that
is running with the same key is not disturbed. The type of refusal shows whether SuperLink knows the key.
"""

import httpx
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.proto.fleet_pb2 import ActivateNodeRequest
from flwr.supercore.error import ApiErrorCode, FlowerError
from flwr.supercore.primitives.asymmetric import public_key_to_bytes
from flwr.supernode.fleet_http_client import FleetHttpClient
from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

_NO_INTERVAL = 0.0
"""Seconds between heartbeats, outside the range that SuperLink accepts."""
_KNOWN: dict[int, bool] = {
    ApiErrorCode.FLEET_INVALID_HEARTBEAT_INTERVAL: True,
    ApiErrorCode.FLEET_NODE_ACTIVATION_FAILED: False,
}


def try_key(coordinator: str, authority: bytes, key: ec.EllipticCurvePrivateKey) -> tuple[int, bool | None]:
    """Return the HTTP status of SuperLink's answer, and whether it knows the key; None if this remains unknown.

    Args:
        coordinator: host:port of the front door, the coordinator's public endpoint.
        authority: Certificate of the authority that signed the front door's certificate, in PEM form.
        key: The node's key.

    Raises:
        httpx.HTTPError: There is no answer.
        ValueError: The answer is not one of Flower's.
    """
    public = key.public_key()
    request = ActivateNodeRequest(public_key=public_key_to_bytes(public), heartbeat_interval=_NO_INTERVAL)
    signer = NodeAuthHttpInterceptor(key, public)
    try:
        with FleetHttpClient.from_server_address(coordinator, False, authority, [signer]) as client:
            client.ActivateNode(request)
    except httpx.HTTPStatusError as error:
        refusal = FlowerError.from_json(error.response.text)
        return error.response.status_code, _KNOWN.get(refusal.code) if refusal else None
    return httpx.codes.OK, None
