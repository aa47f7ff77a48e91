"""The public files that a coordinator and a hospital exchange: invitation, party file, roster file.

They contain no secret, but they determine whom each side trusts, so compare their fingerprints by telephone. A
fingerprint covers the whole content, and each content has one form: nothing that is used can change without it.
"""

import hashlib
import json
import re
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import ClassVar, Self

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_public_key

from common.address import host_and_port
from common.domain import MOST_RECORDS
from common.errors import ConfigError
from common.phrases import group_by_four, quote_name
from common.spelling import alike, is_blank, mixes_scripts, strip_accents
from common.system.certificates import only_certificate
from common.validate import check_type, integers_in, known_keys

_HEX = re.compile("[0-9a-f]{64}")
_LIKE_A_FINGERPRINT = re.compile(
    r":"
    r"|(?<![^\W_])(?:(?:[0-9a-f]{4}[\W_]*){2,}|[^\W_]{4}(?:[\W_]+[^\W_]{4}){2})(?![^\W_])"
    r"|(?<!\S)\S{4}(?: \S{4}){2}(?!\S)"
)
"""What a name must not contain, since it could show another hospital's fingerprint: a colon, two groups of four digits
of base 16, or three groups of four characters of any kind, which can look like such digits."""
LONGEST_NAME = 100
_RENAME = (
    "Choose another name. For a hospital that is enrolled, write it in client.yaml, in party.json and, at the "
    "coordinator, in parties.json; then caucus-coordinator invite writes the roster again"
)
"""What to do about a name, of which earlier versions accepted more."""
_RECEIVE = "Check the path, or get the file again, made by the version that is installed here"


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
            raise ConfigError(cls.FILE, expected="an existing file", got="none", where=path, do=_RECEIVE) from None
        except OSError as error:
            raise ConfigError(cls.FILE, expected="a file", got=error.strerror, where=path, do=_RECEIVE) from None
        except (ValueError, RecursionError):
            raise ConfigError(cls.FILE, expected="JSON", got="something else", where=path, do=_RECEIVE) from None
        for other in (Invitation, PartyFile, RosterFile):
            known = isinstance(values, dict) and set(_required(other)) <= set(values) <= set(_names(other))
            if known and other is not cls:
                got = f"the content of {other.FILE}"
                raise ConfigError(cls.FILE, expected="such a file", got=got, where=path, do=_RECEIVE)
        try:
            return cls.from_values(values)
        except ConfigError as error:
            error.do = error.do if error.do == _RENAME else _RECEIVE  # no one may change it: others compare its digest
            raise error.placed(path) from None

    @classmethod
    def from_values(cls, values: object) -> Self:
        """Create the object from its fields in JSON's types; raise a ConfigError that names an invalid field."""
        return cls(**known_keys(cls.FILE, values, among=_names(cls), required=_required(cls)))

    def to_json(self) -> str:
        """Return the content of the file."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False)

    @property
    def fingerprint(self) -> str:
        """First 32 hex digits of the SHA-256 of the file's name and content, in groups of four."""
        return group_by_four(hashlib.sha256(f"{self.FILE} {self.to_json()}".encode()).hexdigest()[:32])


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation(_Public):
    """A coordinator's public data for the hospitals.

    Attributes:
        address: host:port of its front door, which is its public endpoint.
        certificate: Certificate, in PEM form and nothing else, of the authority that signed the front door's.
        bundle: Hex SHA-256 of the bundle that the coordinator runs.
        protocol: Version of the protocol that the coordinator speaks.
    """

    FILE = "invitation.json"

    address: str
    certificate: str
    bundle: str
    protocol: int

    def __post_init__(self) -> None:
        for name in ("address", "certificate", "bundle"):
            check_type(f"invitation's {name}", getattr(self, name), str)
        integers_in(1, 2**16, **{"invitation's protocol": self.protocol})
        host_and_port("invitation's address", self.address)
        if not _HEX.fullmatch(self.bundle):
            raise ConfigError("invitation's bundle", expected="64 hexadecimal digits", got=self.bundle)
        try:
            only_certificate(self.certificate.encode())
        except ValueError:
            expected = "one certificate alone, PEM"
            raise ConfigError("invitation's certificate", expected=expected, got="another text") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyFile(_Public):
    """A hospital's public data for the coordinator and the other hospitals.

    Attributes:
        name: The hospital's name. It stands next to fingerprints, so it must not look like one, nor end unseen.
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
        if not isinstance(self.name, str) or not _is_name(self.name):
            raise ConfigError(
                "party's name",
                expected=f"1 to {LONGEST_NAME} printable characters, with single spaces between words, one script in "
                "each word, no colon, and nothing like a fingerprint: two groups of four digits of base 16 (0-9, a-f) "
                "or three words of four characters in a row",
                got="another",
                do=_RENAME,
            )
        if not isinstance(self.identity, str) or not _HEX.fullmatch(self.identity):
            raise ConfigError("party's identity key", expected="64 hexadecimal digits", got="another", where=self.name)
        try:
            key = load_ssh_public_key(str(self.node_key).encode())
        except (ValueError, NotImplementedError, UnsupportedAlgorithm):
            key = None
        if (
            not isinstance(key, ec.EllipticCurvePublicKey)
            or not isinstance(key.curve, ec.SECP384R1)
            or key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode() != self.node_key  # as with a comment
        ):
            raise ConfigError("party's node key", expected="NIST P-384 in OpenSSH form", got="another", where=self.name)

    def shown(self, number: int, mark: str = "") -> tuple[str, str]:
        """Return the lines that a person compares: the fingerprint alone, then who it is said to belong to."""
        most = f"at most {self.max_records:,} records"
        return self.fingerprint, f"  party {number}{mark}, {most}, with the name {quote_name(self.name)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RosterFile(_Public):
    """The public data of all hospitals, from their own party files; a hospital's index in the list is its number."""

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
        for similar in alike(self.names):
            names = " and ".join(map(quote_name, similar))
            raise ConfigError("roster", expected="names that people can tell apart", got=names, do=_RENAME)

    @property
    def names(self) -> tuple[str, ...]:
        """The hospitals' names, in the order of their numbers."""
        return tuple(party.name for party in self.parties)


def _is_name(name: str) -> bool:
    return (
        0 < len(name) <= LONGEST_NAME
        and name.isprintable()
        and name == " ".join(name.split())
        and not any(character != " " and is_blank(character) for character in name)
        and not any(map(mixes_scripts, name.split()))
        and not _LIKE_A_FINGERPRINT.search(strip_accents(name))
    )


def _names(kind: type[_Public]) -> list[str]:
    return [field.name for field in fields(kind)]


def _required(kind: type[_Public]) -> list[str]:
    return [field.name for field in fields(kind) if field.default is MISSING]
