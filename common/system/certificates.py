"""A certificate and its remaining validity, about which `status` warns on both sides."""

from datetime import UTC, datetime
from pathlib import Path

from cryptography.x509 import Certificate, load_pem_x509_certificate

from common.errors import ConfigError
from common.system.files import content_of

SOON = 30
"""A warning is given from this number of days before a certificate expires."""


def certificate_of(path: Path) -> Certificate:
    """Read the certificate in a PEM file.

    Raises:
        ConfigError: The file is missing, is a symbolic link, cannot be read or is not a certificate.
    """
    try:
        return load_pem_x509_certificate(content_of(path))
    except (OSError, ValueError) as error:
        got = error.strerror if isinstance(error, OSError) else "something else"
        raise ConfigError("certificate", expected="a PEM file that can be read", got=got, where=path) from None


def days_left(path: Path) -> int:
    """Return the whole days until a PEM file's certificate expires, negative afterwards.

    Errors are the same as for `certificate_of`.
    """
    return (certificate_of(path).not_valid_after_utc - datetime.now(UTC)).days


def in_words(days: int) -> str:
    """Return the remaining validity of a certificate, in words."""
    return f"ends in {days} days" if days >= 0 else "HAS ENDED"
