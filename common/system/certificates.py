"""Files with one certificate: written with their key, read, and asked how long the certificate is still valid."""

from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509 import Certificate, InvalidVersion, load_pem_x509_certificates

from common.errors import ConfigError
from common.system.files import SECRET, content_of, write_atomic

SOON = 30
"""A warning is given from this number of days before a certificate expires."""


def only_certificate(pem: bytes) -> Certificate:
    """Return the certificate of a PEM text that contains nothing else, not even a blank line.

    TLS trusts every certificate in such a text, but people compare the fingerprint of one.

    Raises:
        ValueError: The text is no certificate, or contains anything else.
    """
    try:
        certificate, *others = load_pem_x509_certificates(pem)
    except InvalidVersion as error:
        raise ValueError(str(error)) from None
    if others or certificate.public_bytes(Encoding.PEM) != pem:
        raise ValueError("more than a certificate")
    return certificate


def write_certificate(folder: Path, name: str, certificate: Certificate, key: EllipticCurvePrivateKey) -> None:
    """Write `NAME.key`, for this account alone, and then `NAME.crt`, both in PEM form."""
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write_atomic(folder / f"{name}.key", pem, mode=SECRET)
    write_atomic(folder / f"{name}.crt", certificate.public_bytes(Encoding.PEM))


def certificate_of(path: Path, *, do: str | None = None) -> Certificate:
    """Read the certificate in a PEM file.

    Raises:
        ConfigError: The file is missing, is a symbolic link, cannot be read, or is not one certificate alone; the
            message ends with the advice `do`.
    """
    try:
        return only_certificate(content_of(path))
    except (OSError, ValueError) as error:
        got = error.strerror if isinstance(error, OSError) else "something else"
        expected = "a PEM file with one certificate alone"
        raise ConfigError("certificate", expected=expected, got=got, where=path, do=do) from None


def days_left(path: Path) -> int:
    """Return the whole days until the certificate in a PEM file expires, negative afterwards."""
    return (certificate_of(path).not_valid_after_utc - datetime.now(UTC)).days


def validity_in_words(days: int) -> str:
    """Return the remaining validity of a certificate, in words."""
    return f"ends in {days} days" if days >= 0 else "HAS ENDED"
