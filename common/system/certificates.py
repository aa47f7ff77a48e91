"""A file with one certificate, and the certificate's remaining validity, about which `status` warns on both sides."""

from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import Certificate, InvalidVersion, load_pem_x509_certificates

from common.errors import ConfigError
from common.system.files import content_of

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


def certificate_of(path: Path, *, do: str | None = None) -> Certificate:
    """Read the certificate in a PEM file.

    Args:
        path: The file.
        do: Advice for the error.

    Raises:
        ConfigError: The file is missing, is a symbolic link, cannot be read, or is not one certificate alone.
    """
    try:
        return only_certificate(content_of(path))
    except (OSError, ValueError) as error:
        got = error.strerror if isinstance(error, OSError) else "something else"
        expected = "a PEM file with one certificate alone"
        raise ConfigError("certificate", expected=expected, got=got, where=path, do=do) from None


def days_left(path: Path) -> int:
    """Return the whole days until a PEM file's certificate expires, negative afterwards.

    Errors are the same as for `certificate_of`.
    """
    return (certificate_of(path).not_valid_after_utc - datetime.now(UTC)).days


def validity_in_words(days: int) -> str:
    """Return the remaining validity of a certificate, in words."""
    return f"ends in {days} days" if days >= 0 else "HAS ENDED"
