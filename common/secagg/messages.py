"""What crosses the wire in a round of secure aggregation, and the context that both sides must share."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from common.domain import PartyId
from common.errors import ConfigError, ProtocolError

KEY_BYTES = 32
"""Length of an X25519 public key."""

SealedShares = Mapping[PartyId, bytes]
"""Peer to ciphertext: by receiver when a party sends them, by sender when a party receives them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundContext:
    """One attempt at one sum, as the coordinator announced it to every party.

    Attributes:
        run: Name of the run, unique among all runs of these parties.
        index: Round within the run, from 0.
        attempt: Attempt at this round, from 0. Each attempt uses fresh keys, and each that is unmasked is a release
            of its own.
        parties: The roster that is asked, ascending.
        threshold: t of Shamir's scheme: this many parties can recover a dropped party's mask key, fewer learn nothing.
        minimum_survivors: The fewest vectors that a sum may hold, from the planned noise.
        length: Coordinates in each vector.
        binding: SHA-256 of all of the above; each derived key depends on it, so parties that were told different
            contexts cannot open each other's shares.
    """

    run: str
    index: int
    attempt: int
    parties: tuple[PartyId, ...]
    threshold: int
    minimum_survivors: int
    length: int
    binding: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse a round that cannot be run.

        Raises:
            ConfigError: If a field is out of its range.
        """
        if not self.run:
            raise ConfigError("run", expected="a name", got="an empty string")
        if len(self.parties) < 2:
            raise ConfigError(
                "parties",
                expected="at least 2",
                got=len(self.parties),
                do="Switch secure aggregation off: the sum over one party is that party's vector",
            )
        if list(self.parties) != sorted(set(self.parties)):
            raise ConfigError("parties", expected="distinct and ascending", got=self.parties)
        _within(0, 2**63 - 1, index=self.index, attempt=self.attempt, first_party=self.parties[0])
        _within(1, 2**63 - 1, length=self.length)
        _within(0, 2**20 - 1, last_party=self.parties[-1])
        _within(2, len(self.parties), threshold=self.threshold, minimum_survivors=self.minimum_survivors)
        object.__setattr__(self, "binding", _digest(self))

    @property
    def quorum(self) -> int:
        """The fewest parties that must still take part in every step up to the masked vectors."""
        return max(self.threshold, self.minimum_survivors)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAdvert:
    """A party's two X25519 public keys for one attempt, 32 bytes each.

    Attributes:
        mask_public: Agrees on pairwise masks; its private key is shared among the peers.
        seal_public: Agrees on the keys that seal those shares; its private key never leaves the party.
    """

    mask_public: bytes
    seal_public: bytes

    def __post_init__(self) -> None:
        """Refuse keys of the wrong size.

        Raises:
            ProtocolError: If a key is not 32 bytes.
        """
        for key in (self.mask_public, self.seal_public):
            if not isinstance(key, bytes) or len(key) != KEY_BYTES:
                raise ProtocolError("public key", expected=f"{KEY_BYTES} bytes", got="something else")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmaskShares:
    """One party's shares of what the coordinator needs to unmask the sum. Without repr of the shares.

    Attributes:
        self_seeds: Surviving party to this party's share of its self-mask seed.
        mask_keys: Dropped party to this party's share of its mask key. No party is in both.
    """

    self_seeds: Mapping[PartyId, bytes] = field(repr=False)
    mask_keys: Mapping[PartyId, bytes] = field(repr=False)


def _within(low: int, high: int, **values: int) -> None:
    for name, value in values.items():
        if not isinstance(value, int) or not low <= value <= high:
            raise ConfigError(name, expected=f"a whole number in [{low}, {high}]", got=value)


def _digest(context: RoundContext) -> bytes:
    """SHA-256 over an injective encoding: the name with its length in front, then numbers of 8 bytes each."""
    name = context.run.encode()
    numbers = (
        context.index,
        context.attempt,
        context.threshold,
        context.minimum_survivors,
        context.length,
        *context.parties,
    )
    encoded = b"".join(number.to_bytes(8, "big") for number in (len(name), *numbers))
    return hashlib.sha256(encoded[:8] + name + encoded[8:]).digest()
