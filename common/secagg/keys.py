"""Keys of one round: X25519 pairs, derivation by purpose, sealing.

Every symmetric key is HKDF-SHA256 (RFC 5869) of a secret, under an `info` that names the protocol's version, the
purpose, the round's context (run, round, attempt, roster, thresholds, length) and an ordered pair of parties. So no
two purposes, rounds, attempts or pairs share a key, even if somebody used the same entropy twice. A key that seals does
so once in one direction, which is why its nonce can be zero.

Private and derived keys live in classes without repr.
"""

from typing import Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from common.domain import PartyId
from common.errors import InternalError, ProtocolError
from common.secagg.messages import KEY_BYTES, RoundContext

Purpose = Literal["mask", "seal", "own mask key", "own seal key", "own self-mask seed", "own share coefficients"]

SEAL_OVERHEAD = 16
"""Bytes by which a sealed message is longer than the plain one."""

_PROTOCOL = b"caucus secagg 1"
_NONCE = bytes(12)


class Secret:
    """32 secret bytes without a repr."""

    __slots__ = ("_value",)

    def __init__(self, value: bytes) -> None:
        if len(value) != KEY_BYTES:
            raise InternalError("secret", expected=f"{KEY_BYTES} bytes", got=f"{len(value)} bytes")
        self._value = value

    def reveal(self) -> bytes:
        """The 32 bytes."""
        return self._value

    def derive(self, purpose: Purpose, context: RoundContext, first: PartyId, second: PartyId) -> "Secret":
        """The key for one purpose, one round and one ordered pair of parties."""
        info = _info(purpose, context, first, second)
        return Secret(HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=info).derive(self._value))


class KeyPair:
    """An X25519 pair (RFC 7748) without a repr.

    Attributes:
        public: 32 bytes.
    """

    __slots__ = ("_key", "_private", "public")

    def __init__(self, private: Secret) -> None:
        self._private = private
        self._key = X25519PrivateKey.from_private_bytes(private.reveal())
        self.public = self._key.public_key().public_bytes_raw()

    def private(self) -> Secret:
        """The private key, for sharing among the peers."""
        return self._private

    def agree(self, public: bytes, *, where: str) -> Secret:
        """Diffie-Hellman with a peer's public key.

        Args:
            public: 32 bytes.
            where: Party and step, for the error.

        Raises:
            ProtocolError: If the key has low order, so that the agreement would be known to everybody.
        """
        try:
            return Secret(self._key.exchange(X25519PublicKey.from_public_bytes(public)))
        except ValueError:
            raise ProtocolError(
                "public key", expected="an X25519 point of high order", got="one that agrees on nothing", where=where
            ) from None


def mask_key(own: KeyPair, public: bytes, context: RoundContext, party: PartyId, peer: PartyId) -> Secret:
    """The key of the mask that `party` and `peer` share; the same from either side."""
    agreed = own.agree(public, where=f"party {peer}, mask key")
    return agreed.derive("mask", context, min(party, peer), max(party, peer))


def seal(agreed: Secret, context: RoundContext, sender: PartyId, receiver: PartyId, plain: bytes) -> bytes:
    """Encrypt and authenticate the one message from `sender` to `receiver` in this round (AES-256-GCM).

    Args:
        agreed: What the two parties' seal keys agreed on.
        context: The round.
        sender: Who seals.
        receiver: Who can open.
        plain: The message.

    Returns:
        `SEAL_OVERHEAD` bytes more than `plain`.
    """
    key = agreed.derive("seal", context, sender, receiver)
    return AESGCM(key.reveal()).encrypt(_NONCE, plain, _info("seal", context, sender, receiver))


def open_sealed(agreed: Secret, context: RoundContext, sender: PartyId, receiver: PartyId, sealed: bytes) -> bytes:
    """The message that `sender` sealed for `receiver` in this round.

    Raises:
        ProtocolError: If it was altered, cut, or made by or for somebody else or in another round.
    """
    key = agreed.derive("seal", context, sender, receiver)
    try:
        return AESGCM(key.reveal()).decrypt(_NONCE, sealed, _info("seal", context, sender, receiver))
    except InvalidTag:
        raise ProtocolError(
            "sealed shares",
            expected=f"what party {sender} sealed for party {receiver} in round {context.index}",
            got="a ciphertext that does not authenticate",
            where=f"party {sender}, sealed shares",
        ) from None


def check_public(public: bytes, *, where: str) -> None:
    """Refuse a public key of low order, without holding a key of one's own.

    Raises:
        ProtocolError: As `KeyPair.agree`: a low-order point agrees on zero with every private key alike.
    """
    KeyPair(Secret(bytes(range(KEY_BYTES)))).agree(public, where=where)


def _info(purpose: Purpose, context: RoundContext, first: PartyId, second: PartyId) -> bytes:
    """Unambiguous: no purpose holds a bar, and what follows it has a fixed length."""
    return b"|".join(
        (_PROTOCOL, purpose.encode(), context.binding + first.to_bytes(8, "big") + second.to_bytes(8, "big"))
    )
