"""Ed25519 identities of the parties (RFC 8032), and the roster, of which each party keeps its own copy.

Without identities, a party knows its peers only from the coordinator. The parties exchange their public keys once, over
a channel that the coordinator does not control, and each keeps the roster in its own file. A party with a different
roster computes a different digest, and nothing that it signs or seals is accepted.

Semi-honest mode is the same protocol with an empty signature required in place of each signature.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from common.domain import MOST_RECORDS, PartyId
from common.errors import ConfigError, MembershipError, SignatureError
from common.phrases import NumberedParty, Phrase, list_parties
from common.secagg.messages import KEY_BYTES, PROTOCOL, AggregationSetup
from common.system.enrolment import RosterFile

_BOUND = "max_records"
_ENTRY = re.compile("(0|[1-9][0-9]{0,6}) [0-9a-f]{64}")


class Identity:
    """A party's long-term signing key, without a repr.

    Args:
        private: 32 secret bytes.

    Attributes:
        public: 32 bytes, for the roster.
    """

    __slots__ = ("_key", "public")

    def __init__(self, private: bytes) -> None:
        if len(private) != KEY_BYTES:
            do = f"Restore its file, of {KEY_BYTES} bytes, from a backup"
            raise ConfigError("the identity key is damaged", got=f"{len(private)} bytes", do=do)
        self._key = Ed25519PrivateKey.from_private_bytes(private)
        self.public = self._key.public_key().public_bytes_raw()

    def sign(self, statement: bytes) -> bytes:
        """Return the Ed25519 signature of a statement, 64 bytes."""
        return self._key.sign(statement)


@dataclass(frozen=True, slots=True)
class Roster:
    """The public data that the parties have about each other: keys, and a bound on each party's number of records.

    Attributes:
        keys: Ed25519 public key of each party, 32 bytes; all are different, since otherwise one party could sign for
            two.
        max_records: Public bound on the number of records of each party: the largest number that any party has
            declared.
        digest: SHA-256 over the bound, and the parties and keys in ascending order.
    """

    keys: Mapping[PartyId, bytes]
    max_records: int = MOST_RECORDS
    digest: bytes = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Check that the roster is valid.

        Raises:
            ConfigError: An entry is invalid; the message names the party.
        """
        for party, key in self.keys.items():
            if type(party) is not int or not 0 <= party < 2**20:
                raise _damaged_roster("party numbers from 0", party)
            if not isinstance(key, bytes) or len(key) != KEY_BYTES:
                raise _damaged_roster(f"keys of {KEY_BYTES} bytes", "another", NumberedParty(party))
        if len(set(self.keys.values())) != len(self.keys):
            raise _damaged_roster("a different key for each party", "a repeated one")
        if type(self.max_records) is not int or not 1 <= self.max_records <= MOST_RECORDS:
            expected = f"a whole number in [1, {MOST_RECORDS}]"
            raise ConfigError("roster's max_records", expected=expected, got=self.max_records)
        ordered = dict(sorted(self.keys.items()))
        text = b"".join(party.to_bytes(8, "big") + key for party, key in ordered.items())
        text = self.max_records.to_bytes(8, "big") + text
        object.__setattr__(self, "keys", MappingProxyType(ordered))
        object.__setattr__(self, "digest", hashlib.sha256(PROTOCOL + b"|roster|" + text).digest())

    @classmethod
    def of_hospitals(cls, file: RosterFile) -> Self:
        """Return the roster with the hospitals' keys, by number, and their largest declared number of records."""
        return cls(
            {number: bytes.fromhex(party.identity) for number, party in enumerate(file.parties)},
            max((party.max_records for party in file.parties), default=MOST_RECORDS),
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> "Roster":
        """Return the roster that a text contains.

        The text is JSON such as `{"max_records": 1000, "0": "64 hex digits", ...}`; the bound may be absent.

        Raises:
            ConfigError: If the text does not have this form.
        """
        try:
            # A name that comes twice would be silently dropped from a dictionary.
            pairs = json.loads(text, object_pairs_hook=tuple)
        except (ValueError, RecursionError):
            pairs = None
        keys = [pair for pair in pairs if pair[0] != _BOUND] if isinstance(pairs, tuple) else None
        if keys is None or not all(_ENTRY.fullmatch(f"{party} {key}") for party, key in keys):
            raise _damaged_roster('JSON such as {"0": "64 hex digits", "1": ...}', "something else")
        content = dict(pairs)
        if len(content) != len(pairs):
            raise _damaged_roster("each party once", "a party twice")
        bound = content.pop(_BOUND, MOST_RECORDS)
        return cls({int(party): bytes.fromhex(key) for party, key in content.items()}, bound)

    def to_json(self) -> str:
        """Return the text that `from_json` reads, with the parties in ascending order."""
        keys = {str(party): key.hex() for party, key in self.keys.items()}
        return json.dumps({_BOUND: self.max_records, **keys}, indent=1)


def check_roster(setup: AggregationSetup, roster: Roster | None) -> None:
    """Raise MembershipError if the set-up was made for another roster, or for parties that are not on it.

    Raises:
        MembershipError: The rosters differ, or parties are missing; the message names the missing parties.
    """
    if (roster.digest if roster else b"") != setup.roster_digest:
        raise MembershipError(
            "roster", expected=f"the one of this set-up ({setup.mode} mode)", got="another" if roster else "none"
        )
    missing = sorted(set(setup.parties) - set(roster.keys)) if roster else []
    if missing:
        raise MembershipError(
            "roster",
            expected="every party of the set-up",
            got=Phrase("none of ", list_parties(missing)),
            do="Add their public keys",
        )


def sign(identity: Identity | None, statement: bytes) -> bytes:
    """Return the party's signature; empty in semi-honest mode."""
    return identity.sign(statement) if identity else b""


def verify(roster: Roster | None, party: PartyId, statement: bytes, signature: bytes, *, where: Phrase) -> None:
    """Raise SignatureError if `party` did not sign the statement or, in semi-honest mode, if there is a signature.

    Raises:
        SignatureError: The signature is invalid; the message names party and step.
    """
    if roster:
        expected = Phrase("that of ", NumberedParty(party), " over this very statement")
        good = _holds(roster.keys[party], statement, signature)
    else:
        expected = Phrase("none in semi-honest mode")
        good = not signature
    if not good:
        raise SignatureError("signature", expected=expected, got="another", where=where)


def _holds(public: bytes, statement: bytes, signature: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, statement)
    except InvalidSignature:
        return False
    return True


def _damaged_roster(expected: str, got: object, where: object = None) -> ConfigError:
    do = "Make it again: caucus-coordinator invite, then caucus-party roster"
    return ConfigError("roster", expected=expected, got=got, where=where, do=do)
