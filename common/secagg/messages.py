"""Messages of secure aggregation, and the set-up that both sides must share.

A set-up covers all remaining rounds of a run. Each party makes it from the plan that it accepted and from its own
roster, so no later message can weaken it. The coordinator chooses the parameters in the plan, and each party checks
against its own limits whether they are safe enough (`client.guard`). Everything that parties must agree on is bound by
the set-up or by what is derived from it; the list is in the docstring of `common.secagg`.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from common.domain import PartyId
from common.errors import ConfigError, ProtocolError, PublicKeyError, SignatureError

VERSION = 5
"""Version of the protocol, one number for messages and secure aggregation; a party rejects every other version."""

PROTOCOL = b"caucus protocol %d" % VERSION
"""Part of everything that is signed, hashed or derived: parties that speak different versions share no mask."""

KEY_BYTES = 32
"""Length, in bytes, of an X25519 or Ed25519 public key, and of every digest."""

Mode = Literal["semi-honest", "malicious"]
"""Trust in the coordinator: it follows the protocol (semi-honest), or it may do anything (malicious)."""

SealedShares = Mapping[PartyId, bytes]
"""Ciphertexts, keyed by the receiver when a party sends them, and by the sender when a party receives them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregationSetup:
    """One attempt at setting up the remaining rounds.

    Attributes:
        run: Name of the run, unique among all runs of these parties.
        attempt: Attempt number of the set-up, from 0; each attempt creates new keys.
        rounds: Indices of the rounds that the set-up serves, ascending.
        parties: The parties that are asked to take part, ascending.
        threshold: t in Shamir's scheme: t holders of shares of a secret can recover it, and fewer learn nothing about
            it.
        minimum_survivors: The smallest number of vectors in a sum, which follows from the planned noise.
        degree: Number of neighbours of each party: len(parties) - 1, or a smaller even number. A party exchanges shares
            and masks only with its neighbours.
        corrupt: Number of parties that may collude with the coordinator.
        plan_digest: SHA-256 of the plan that this party accepted. Parties with different plans add noise for different
            guarantees, and may count records of different labels: their vectors must not be added together.
        roster_digest: Digest of the parties' identities (`Roster.digest`) in malicious mode; empty in semi-honest mode.
        binding: SHA-256 of all of the above. Each derived key depends on it, so parties that were given different
            values cannot open each other's shares.
    """

    run: str
    attempt: int
    rounds: tuple[int, ...]
    parties: tuple[PartyId, ...]
    threshold: int
    minimum_survivors: int
    degree: int
    plan_digest: bytes
    corrupt: int = 0
    roster_digest: bytes = b""
    binding: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check that the set-up can be run.

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
        _ascending(0, 2**20 - 1, parties=self.parties)
        _ascending(0, 2**63 - 1, rounds=self.rounds)
        count = len(self.parties)
        _within(0, 2**63 - 1, attempt=self.attempt)
        _within(1, count - 1, degree=self.degree)
        full = self.degree == count - 1
        if self.degree % 2 and not full:
            raise ConfigError("degree", expected=f"an even number, or {count - 1} for all", got=self.degree)
        _within(2, self.degree + 1, threshold=self.threshold)
        _within(2, count, minimum_survivors=self.minimum_survivors)
        _within(0, self.threshold - 1 if full else count - 2, corrupt=self.corrupt)
        if len(self.plan_digest) != KEY_BYTES:
            raise ConfigError("plan digest", expected=f"{KEY_BYTES} bytes", got=len(self.plan_digest))
        if len(self.roster_digest) not in (0, KEY_BYTES):
            raise ConfigError("roster digest", expected=f"{KEY_BYTES} bytes, or none", got=len(self.roster_digest))
        object.__setattr__(self, "binding", _digest(self))

    @property
    def mode(self) -> Mode:
        """The mode, which states how far the coordinator is trusted: "malicious" or "semi-honest"."""
        return "malicious" if self.roster_digest else "semi-honest"

    @property
    def signers(self) -> int:
        """Number of signatures over one survivor set that a party requires before it unmasks; 0 in semi-honest mode."""
        if self.mode == "semi-honest":
            return 0
        return signers(
            len(self.parties),
            corrupt=self.corrupt,
            degree=self.degree,
            threshold=self.threshold,
            survivors=self.minimum_survivors,
        )

    @property
    def quorum(self) -> int:
        """The smallest number of parties that must take part in every step up to the masked vectors."""
        return max(self.threshold, self.minimum_survivors, self.signers)


def signers(parties: int, *, corrupt: int, degree: int, threshold: int, survivors: int) -> int:
    """Return the minimum number of signatures that rules out a second survivor set, with a malicious coordinator.

    1. In one round. Two sets with more than (L + C) / 2 signatures each would need more than L + C signatures. But each
       honest party signs once a round, and each corrupt party at most twice: L + C in total. With more corrupt parties
       than C there can be two sets, and shares from both open a single party's vector.
    2. In two rounds that ask the same question. A party whose shares opened a sum signs no other set for the question.
       To open a sum, at least H parties must send shares. On the full graph H = t. On a sparse graph, t shares of the
       seed of each of at least s - C honest survivors are needed, and each party holds only the shares of its
       neighbours and its own, so H = t (s - C) / (k + 1). At least H - C of the H parties are honest, and without these
       at most L - H + C parties can sign.

    Args:
        parties: L, number of parties.
        corrupt: C, number of corrupt parties.
        degree: k, number of neighbours of each party.
        threshold: t, number of shares that recover a secret.
        survivors: s, the smallest number of vectors in a sum.
    """
    holders = threshold if degree == parties - 1 else math.ceil(threshold * (survivors - corrupt) / (degree + 1))
    return max((parties + corrupt) // 2, parties + corrupt - holders) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAdvert:
    """A party's X25519 public keys for one set-up, 32 bytes each.

    Attributes:
        seal_public: Key for agreeing on the keys that seal shares; its private key never leaves the party.
        mask_publics: One key for each round, in order, for agreeing on pairwise masks; its private key is split into
            shares for the neighbours.
        signature: Ed25519 signature over `rules.advert_statement`, 64 bytes; empty in semi-honest mode.
    """

    seal_public: bytes
    mask_publics: tuple[bytes, ...]
    signature: bytes = b""

    def __post_init__(self) -> None:
        """Check the sizes of the keys, and the type of the signature.

        Raises:
            PublicKeyError: If a key is not 32 bytes.
            SignatureError: If the signature is not bytes.
        """
        for key in self.keys:
            if not isinstance(key, bytes) or len(key) != KEY_BYTES:
                raise PublicKeyError("public key", expected=f"{KEY_BYTES} bytes", got="something else")
        if not isinstance(self.signature, bytes):
            raise SignatureError("signature", expected="bytes", got=type(self.signature).__name__)

    @property
    def keys(self) -> tuple[bytes, ...]:
        """All public keys: first the key for sealing, then the keys for masks."""
        return (self.seal_public, *self.mask_publics)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmaskShares:
    """One party's shares of the secrets that the coordinator needs to unmask one sum. The shares have no repr.

    Attributes:
        self_seeds: This party's share of the self-mask seed of each surviving neighbour and of itself, keyed by party.
        mask_keys: This party's share of each dropped neighbour's mask key, keyed by party. No party is in both
            mappings.
    """

    self_seeds: Mapping[PartyId, bytes] = field(repr=False)
    mask_keys: Mapping[PartyId, bytes] = field(repr=False)

    def __post_init__(self) -> None:
        """Check that no party has both kinds of share.

        Raises:
            ProtocolError: A party has both kinds; the message names all such parties.
        """
        both = set(self.self_seeds) & set(self.mask_keys)
        if both:
            raise ProtocolError("shares", expected="one kind for each party", got=f"both for {sorted(both)}")


def _within(low: int, high: int, **values: int) -> None:
    for name, value in values.items():
        if type(value) is not int or not low <= value <= high:
            raise ConfigError(name, expected=f"a whole number in [{low}, {high}]", got=value)


def _ascending(low: int, high: int, **values: tuple[int, ...]) -> None:
    for name, numbers in values.items():
        if not numbers or list(numbers) != sorted(set(numbers)):
            raise ConfigError(name, expected="distinct and ascending, at least one", got=numbers)
        for number in numbers:
            _within(low, high, **{name: number})


def _digest(setup: AggregationSetup) -> bytes:
    """Hash an injective encoding of the set-up: each variable part comes after its length, and numbers have 8 bytes."""
    run = setup.run.encode()
    numbers = (
        setup.attempt,
        setup.threshold,
        setup.minimum_survivors,
        setup.degree,
        setup.corrupt,
        len(setup.roster_digest),
        len(setup.rounds),
        *setup.rounds,
        *setup.parties,
    )
    encoded = b"".join(number.to_bytes(8, "big") for number in (len(run), *numbers))
    return hashlib.sha256(PROTOCOL + b"|set-up|" + encoded + run + setup.plan_digest + setup.roster_digest).digest()
