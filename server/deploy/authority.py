"""The coordinator's certificates: its private authority, and the certificate for its front door and SuperLink.

Hospitals trust this authority and no other, so no public authority can impersonate the coordinator. The server's
certificate and key are renewed by hand: run `caucus-coordinator renew` before their validity period `VALID` ends
(`serve` and `status` warn 30 days before). Hospitals keep the authority's certificate.
"""

import ipaddress
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from common.errors import ConfigError
from common.system.certificates import SOON, days_left, validity_in_words, write_certificate
from common.system.files import check_secret

AUTHORITY_VALID = timedelta(days=3650)
VALID = timedelta(days=365)


def make_authority(folder: Path, *, now: datetime | None = None) -> None:
    """Generate the authority, and write its certificate and key to `ca.crt` and `ca.key`."""
    key = ec.generate_private_key(ec.SECP384R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Caucus coordinator's authority")])
    certificate = (
        _certificate(name, name, key.public_key(), now or datetime.now(UTC), AUTHORITY_VALID)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA384())
    )
    write_certificate(folder, "ca", certificate, key)


def make_certificate(folder: Path, host: str, *, now: datetime | None = None, valid: timedelta = VALID) -> None:
    """Write `server.crt` and `server.key` for this host and for loopback, signed by the folder's authority.

    Raises:
        ConfigError: The authority's key is missing, accessible to others, or does not match the certificate.
    """
    check_secret(folder / "ca.key")
    authority = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
    signer = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
    if not isinstance(signer, ec.EllipticCurvePrivateKey) or signer.public_key() != authority.public_key():
        raise ConfigError("ca.key does not fit ca.crt", where=folder, do="Restore both from a backup")
    key = ec.generate_private_key(ec.SECP384R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Caucus coordinator")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1")), _name(host)]
    certificate = (
        _certificate(name, authority.subject, key.public_key(), now or datetime.now(UTC), valid)
        .add_extension(x509.SubjectAlternativeName(list(dict.fromkeys(names))), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .sign(signer, hashes.SHA384())
    )
    write_certificate(folder, "server", certificate, key)


def check_certificate(folder: Path) -> None:
    """Check that hospitals would accept the server's certificate now.

    Raises:
        ConfigError: The certificate is missing, expired or not yet valid, or its key is accessible to others.
    """
    check_secret(folder / "server.key")
    path = folder / "server.crt"
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError):
        raise ConfigError("server.crt cannot be read", where=path, do="Run caucus-coordinator renew") from None
    first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if not first <= datetime.now(UTC) <= last:
        raise ConfigError(
            "server's certificate",
            expected=f"a time from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC",
            got=f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
            where=path,
            do="Set the clock, or run caucus-coordinator renew",
        )


def ending_soon(folder: Path) -> Iterator[str]:
    """Yield a warning for each certificate that expires within 30 days."""
    for name, do in (("server.crt", "caucus-coordinator renew"), ("ca.crt", "the hospitals need a new invitation")):
        if (days := days_left(folder / name)) < SOON:
            yield f"WARNING: {name} {validity_in_words(days)}: {do}"


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, valid: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))  # clocks differ a little
        .not_valid_after(now + valid)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
