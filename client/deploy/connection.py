"""Checks of a hospital's connection to the coordinator, made from the hospital's machine; they change nothing there."""

import os
import re
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPSConnection

import httpx
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_ssh_private_key
from cryptography.x509 import load_der_x509_certificate

from client.deploy.settings import HospitalSettings
from client.flower import proxy
from client.flower.node_key import try_key
from common.address import LOCAL, host_and_port
from common.errors import CaucusError, ConfigError
from common.system.files import content_of

TIMEOUT = 10.0
AHEAD, BEHIND = 5, 300
"""Seconds by which this machine's clock may be ahead or behind, since a node signs the time of each call and Flower
checks that time."""

_UNKNOWN_ISSUER = frozenset({18, 19, 20, 21})
"""OpenSSL's error codes for a certificate that no known authority has signed: X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT
and the three after it."""
_OPENED = (
    "If a proxy or firewall opens TLS, let it pass this address unopened: its certificate is never accepted. Otherwise "
    "compare the invitation's fingerprint"
)
_CLOCKS = "Compare the clocks of both machines and the invitation's fingerprint"
_REFUSED = re.compile(r"Tunnel connection failed: (\d+) ?(.*)", re.DOTALL)
"""Pattern of http.client's message about a proxy's refusal, which contains the status and the reason."""
_ADVICE = {
    "403": "Ask for a rule of the proxy that lets CONNECT to this host and port through",
    "407": f"Write the proxy's login, USER:PASSWORD, into node/{proxy.LOGIN}, or correct it",
}
"""Advice, keyed by the status of a proxy's refusal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Facts about the connection of one request to the front door, the coordinator's public endpoint.

    Attributes:
        secure: Version of TLS.
        expires: Time at which the coordinator's certificate expires.
        ahead: Seconds by which this machine's clock is ahead of the coordinator's; None if the answer had no date. The
            coordinator's dates are in whole seconds.
        via: URL of the proxy that the request went through; None for a direct connection.
    """

    secure: str
    expires: datetime
    ahead: int | None
    via: str | None


def connect(settings: HospitalSettings) -> Connection:
    """Query the health endpoint of the front door over TLS, with the coordinator's own certificate authority.

    Raises:
        ConfigError: The certificate is expired, not yet valid, signed by another authority or for another host; or the
            authority's certificate is missing; or the proxy's login is wrong.
        CaucusError: There is no answer, or the proxy refuses.
    """
    there = host_and_port("coordinator", settings.coordinator)
    via = settings.proxy if there[0] not in LOCAL else None
    context = ssl.create_default_context(cadata=settings.authority().public_bytes(Encoding.DER))
    host, at = proxy.address(via) if via else there
    door = HTTPSConnection(host, at, timeout=TIMEOUT, context=context)
    if via:
        door.set_tunnel(*there, headers=proxy.headers(settings.node))
    try:
        door.connect()
        here = datetime.now(UTC)  # before it asks, as a node signs before it calls
        secure, certificate = str(door.sock.version()), door.sock.getpeercert(binary_form=True) or b""
        door.request("GET", "/health")
        date = door.getresponse().getheader("Date", "")
    except ssl.SSLCertVerificationError as error:
        raise ConfigError(
            "coordinator's certificate",
            expected="a valid one of its authority",
            got=error.verify_message,
            where=_where(settings.coordinator, via),
            do=_OPENED if error.verify_code in _UNKNOWN_ISSUER else _CLOCKS,
        ) from error
    except (OSError, HTTPException) as error:
        raise _unanswered(error, settings.coordinator, via) from error
    finally:
        door.close()
    return Connection(
        secure=secure,
        expires=load_der_x509_certificate(certificate).not_valid_after_utc,
        ahead=_ahead(date, here),
        via=via,
    )


def check_clock(ahead: int | None) -> str:
    """Return the difference between the clocks, in words.

    Raises:
        ConfigError: This machine's clock is too far ahead or behind.
    """
    if ahead is None:
        return "the coordinator's clock is not known"
    if not -BEHIND < ahead < AHEAD:
        raise ConfigError(
            "clock of this machine",
            expected=f"less than {AHEAD} s ahead of the coordinator's and {BEHIND} s behind it",
            got=f"{abs(ahead)} s {'ahead' if ahead > 0 else 'behind'}",
            do="Set the one that is wrong, best by NTP on both: until then this hospital's node is not let in",
        )
    return f"clocks within {abs(ahead) + 1} s"


def check_node_key(settings: HospitalSettings) -> None:
    """Check that the coordinator knows this node's key.

    Raises:
        ConfigError: The key is not a NIST P-384 key, or the coordinator does not know it.
        CaucusError: The coordinator does not answer, or answers in an unexpected way.
    """
    path = settings.node / "node.key"
    try:
        key = load_ssh_private_key(content_of(path), None)
    except (OSError, ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ConfigError("the node's key is no P-384 key in OpenSSH form", where=path, do="Restore it from a backup")
    authority = settings.authority().public_bytes(Encoding.PEM)
    try:
        with proxy.use_proxy(settings.proxy, settings.node):
            status, known = try_key(settings.coordinator, authority, key)
    except (httpx.HTTPError, ValueError) as error:
        raise _unanswered(error, settings.coordinator, settings.proxy) from error
    if known:
        return
    if known is not None:
        do = "Send party.json to the coordinator for caucus-coordinator enrol, or ask why this hospital was removed"
        raise ConfigError("the node's key is not enrolled yet, or was removed", where=settings.coordinator, do=do)
    if status == httpx.codes.UNAUTHORIZED:
        raise CaucusError("the coordinator refuses the node's signature", do="Compare the clocks")
    do = "Ask the coordinator whether its caucus-coordinator serve works"
    raise CaucusError("SuperLink gives no answer to a node", got=f"status {status}", where=settings.coordinator, do=do)


def _where(coordinator: str, via: str | None) -> str:
    return f"{coordinator}, through {via}" if via else coordinator


def _unanswered(error: Exception, coordinator: str, via: str | None) -> CaucusError:
    """Return the error for a request that got no response or that a proxy refused."""
    got = getattr(error, "strerror", None) or type(error).__name__
    if via is None:
        do = "Check that it runs, and that the firewall allows outbound TCP to this port."
        if any(os.environ.get(name) for name in ("https_proxy", "HTTPS_PROXY")):
            do += " This shell names a proxy, which counts only as `proxy` in client.yaml"
        return CaucusError("coordinator", expected="an answer", got=got, where=coordinator, do=do)
    refused = _REFUSED.match(str(error))
    if refused is None:
        do = "Check that the proxy runs, and that `proxy` in client.yaml is right"
        return CaucusError("proxy", expected="an answer", got=got, where=_where(coordinator, via), do=do)
    status, reason = refused.groups()
    return CaucusError(
        "proxy",
        expected="a tunnel to the coordinator",
        got=f"{status} {reason if reason.isprintable() else ascii(reason)}".rstrip(),
        where=_where(coordinator, via),
        do=_ADVICE.get(status, f"Check that the coordinator runs, and that the proxy reaches {coordinator}"),
    )


def _ahead(there: str, here: datetime) -> int | None:
    try:
        return round((here - parsedate_to_datetime(there)).total_seconds())
    except (TypeError, ValueError, OverflowError):
        return None
