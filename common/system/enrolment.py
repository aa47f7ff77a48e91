"""The public files that a coordinator and a hospital exchange: invitation, party file, roster file.

They contain no secret, but they determine whom each side trusts, so compare their fingerprints by telephone.
"""

import hashlib
import json
import re
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import ClassVar, Self

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_public_key
from cryptography.x509 import load_pem_x509_certificate

from common.address import host_and_port
from common.domain import MOST_RECORDS
from common.errors import ConfigError
from common.phrases import in_fours
from common.validate import integers_in, known_keys, of_type

_HEX = re.compile("[0-9a-f]{64}")
LONGEST_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class _Public:
    FILE: ClassVar[str]
    """Name of a file of this class, in the folder where it is created and in error messages."""

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the file.

        Raises:
            ConfigError: The file is missing, is not JSON, is one of the other public files, or has a wrong field.
        """
        try:
            values = json.loads(path.read_bytes())
        except FileNotFoundError:
            raise ConfigError(cls.FILE, expected="an existing file", got="none", where=path) from None
        except OSError as error:
            raise ConfigError(cls.FILE, expected="a file to read", got=error.strerror, where=path) from None
        except (ValueError, RecursionError):
            raise ConfigError(cls.FILE, expected="JSON", got="something else", where=path) from None
        for other in (Invitation, PartyFile, RosterFile):
            if (
                other is not cls
                and isinstance(values, dict)
                and set(_required(other)) <= set(values) <= set(_names(other))
            ):
                raise ConfigError(cls.FILE, expected="such a file", got=f"the content of {other.FILE}", where=path)
        try:
            return cls.from_values(values)
        except ConfigError as error:
            raise error.placed(path) from None

    @classmethod
    def from_values(cls, values: object) -> Self:
        """Create the object from its fields in JSON's types.

        Raises:
            ConfigError: A field is unknown, missing or invalid; the message names it.
        """
        return cls(**known_keys(cls.FILE, values, among=_names(cls), required=_required(cls)))

    def to_json(self) -> str:
        """Return the content of the file."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation(_Public):
    """A coordinator's public data for the hospitals.

    Attributes:
        address: host:port of its front door, which is its public endpoint.
        certificate: Certificate, in PEM form, of the authority that signed the front door's certificate.
        bundle: Hex SHA-256 of the bundle that the coordinator runs.
    """

    FILE = "invitation.json"

    address: str
    certificate: str
    bundle: str

    def __post_init__(self) -> None:
        for name in _names(type(self)):
            of_type(f"invitation's {name}", getattr(self, name), str)
        host_and_port("invitation's address", self.address)
        if not _HEX.fullmatch(self.bundle):
            raise ConfigError("invitation's bundle", expected="64 hexadecimal digits", got=self.bundle)
        try:
            load_pem_x509_certificate(self.certificate.encode())
        except ValueError:
            raise ConfigError("invitation's certificate", expected="a certificate, PEM", got="another text") from None

    @property
    def fingerprint(self) -> str:
        """First 32 hex digits of the SHA-256 of the authority's certificate, in groups of four."""
        return in_fours(load_pem_x509_certificate(self.certificate.encode()).fingerprint(hashes.SHA256()).hex()[:32])


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyFile(_Public):
    """A hospital's public data for the coordinator and the other hospitals.

    Attributes:
        name: The hospital's name.
        identity: Ed25519 public key, hexadecimal.
        node_key: Public key of its node, NIST P-384, in OpenSSH form.
        max_records: The largest number of records that the hospital will ever have. It is public for two reasons:
            answers take the time that this number would require, and a sum over L parties may cover at most L times the
            largest number that any hospital declares.
    """

    FILE = "party.json"

    name: str
    identity: str
    node_key: str
    max_records: int = MOST_RECORDS

    def __post_init__(self) -> None:
        integers_in(1, MOST_RECORDS, **{"party's max_records": self.max_records})
        if not isinstance(self.name, str) or not 0 < len(self.name) <= LONGEST_NAME or not self.name.isprintable():
            raise ConfigError("party's name", expected=f"1 to {LONGEST_NAME} printable characters", got="another")
        if not isinstance(self.identity, str) or not _HEX.fullmatch(self.identity):
            raise ConfigError("party's identity key", expected="64 hexadecimal digits", got="another", where=self.name)
        try:
            key = load_ssh_public_key(str(self.node_key).encode())
        except (ValueError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP384R1):
            raise ConfigError("party's node key", expected="NIST P-384 in OpenSSH form", got="another", where=self.name)

    @property
    def fingerprint(self) -> str:
        """First 32 hex digits of the SHA-256 of both keys and the bound, in groups of four."""
        return in_fours(hashlib.sha256(f"{self.identity} {self.node_key} {self.max_records}".encode()).hexdigest()[:32])


@dataclass(frozen=True, slots=True, kw_only=True)
class RosterFile(_Public):
    """The public data of all hospitals; a hospital's index in the list is its number.

    Attributes:
        parties: The hospitals' own party files.
    """

    FILE = "roster.json"

    parties: tuple[PartyFile, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.parties, (list, tuple)):
            raise ConfigError("roster's parties", expected="a list of party files", got="something else")
        parties = tuple(
            party if isinstance(party, PartyFile) else PartyFile.from_values(party)  # from a file: the fields of one
            for party in self.parties
        )
        object.__setattr__(self, "parties", parties)
        for what in ("name", "identity", "node_key"):
            if len({getattr(party, what) for party in parties}) < len(parties):
                raise ConfigError("roster", expected=f"a different {what.replace('_', ' ')} for each", got="one twice")

    @property
    def fingerprint(self) -> str:
        """First 32 hex digits of the SHA-256 of all names and keys in order, in groups of four."""
        return in_fours(hashlib.sha256(self.to_json().encode()).hexdigest()[:32])

    @property
    def names(self) -> tuple[str, ...]:
        """The hospitals' names, in the order of their numbers."""
        return tuple(party.name for party in self.parties)


def _names(kind: type[_Public]) -> list[str]:
    return [field.name for field in fields(kind)]


def _required(kind: type[_Public]) -> list[str]:
    return [field.name for field in fields(kind) if field.default is MISSING]
