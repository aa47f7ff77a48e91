"""How long a certificate is still valid: what both sides' `status` warns about."""

from datetime import UTC, datetime
from pathlib import Path

from cryptography.x509 import load_pem_x509_certificate

from common.errors import ConfigError

SOON = 30
"""Days before its end from which a certificate is warned about."""


def days_left(path: Path) -> int:
    """Whole days until the end of a PEM file's certificate; negative after it.

    Raises:
        ConfigError: The file is missing, cannot be read, or is no certificate.
    """
    try:
        certificate = load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError) as error:
        got = error.strerror if isinstance(error, OSError) else "something else"
        raise ConfigError("certificate", expected="a PEM file that can be read", got=got, where=path) from None
    return (certificate.not_valid_after_utc - datetime.now(UTC)).days


def in_words(days: int) -> str:
    """What there is to say of a certificate with so many days left."""
    return f"ends in {days} days" if days >= 0 else "HAS ENDED"
