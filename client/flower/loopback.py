"""The TLS certificate of SuperNode's local API.

The relay uses it to authenticate SuperNode. Otherwise another user of the machine could take the port while SuperNode
is down, and question this hospital in the coordinator's place. The certificate is only for this machine, and only the
relay trusts it. It never expires, so that a wrong clock cannot break the connection.
"""

import ipaddress
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from common.system.certificates import write_certificate

HOST = "127.0.0.1"
CERTIFICATE, KEY = "supernode.crt", "supernode.key"
"""Names of the certificate's and the key's file in the relay's folder."""

_FIRST, _LAST = datetime(2000, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)


def make_certificate(folder: Path) -> None:
    """Write the certificate and its key, unless they exist; the certificate is written last."""
    if (folder / CERTIFICATE).exists():
        return
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "SuperNode's local API")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_FIRST)
        .not_valid_after(_LAST)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    write_certificate(folder, "supernode", certificate, key)
