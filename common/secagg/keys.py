"""X25519 key pairs, derivation of keys by purpose, and sealing of messages.

Every symmetric key is HKDF-SHA256 (RFC 5869) of a secret, under an `info` that names the protocol's version, the
purpose, a binding (32 bytes that stand for all that the parties must agree on, as the docstring of `common.secagg`
lists it) and an ordered pair of parties. So no two purposes, rounds, attempts or pairs share a key, even if the same
entropy is used twice. A sealing key is used once, in one direction, so its nonce can be zero.

Private and derived keys live in classes without repr.
"""

from typing import Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from common.domain import PartyId
from common.errors import InternalError, PublicKeyError, SealError
from common.phrases import NumberedParty, Phrase
from common.secagg.messages import KEY_BYTES, PROTOCOL

Purpose = Literal["mask", "seal", "own mask key", "own seal key", "own self-mask seed", "own share coefficients"]

SEAL_OVERHEAD = 16
"""Bytes by which a sealed message is longer than the plain one."""

_NONCE = bytes(12)
_P = 2**255 - 19
_LOW_ORDER = frozenset(
    {
        0,
        1,
        _P - 1,
        int.from_bytes(bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"), "little"),
        int.from_bytes(bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"), "little"),
    }
)
"""Numbers below p of the points of order 1, 2, 4 or 8 on Curve25519 or its twist (RFC 7748, section 6.1)."""


class Secret:
    """32 secret bytes without a repr."""

    __slots__ = ("_value",)

    def __init__(self, value: bytes) -> None:
        if len(value) != KEY_BYTES:
            raise InternalError("secret", expected=f"{KEY_BYTES} bytes", got=f"{len(value)} bytes")
        self._value = value

    def reveal(self) -> bytes:
        """Return the secret 32 bytes."""
        return self._value

    def derive(self, purpose: Purpose, binding: bytes, first: PartyId, second: PartyId) -> "Secret":
        """Return the key for one purpose, one binding (32 bytes) and one ordered pair of parties."""
        info = _info(purpose, binding, first, second)
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
        """Return the private key, so that it can be split into shares for the peers."""
        return self._private

    def agree(self, public: bytes, *, where: str | Phrase) -> Secret:
        """Return the secret agreed on with a peer's public key (Diffie-Hellman).

        Args:
            public: 32 bytes.
            where: Party and step, for the error.

        Raises:
            PublicKeyError: If the key is not canonical, or has low order, so that everybody would know the agreement.
        """
        return Secret(self._key.exchange(check_public(public, where=where)))


def mask_key(pair: KeyPair, public: bytes, binding: bytes, party: PartyId, peer: PartyId) -> Secret:
    """Return the pairwise mask key of `party` and `peer`; both compute the same key."""
    agreed = pair.agree(public, where=Phrase(NumberedParty(peer), ", mask key"))
    return agreed.derive("mask", binding, min(party, peer), max(party, peer))


def seal(agreed: Secret, binding: bytes, sender: PartyId, receiver: PartyId, plain: bytes) -> bytes:
    """Encrypt and authenticate the one message from `sender` to `receiver` under this binding (AES-256-GCM).

    Args:
        agreed: Result of the key agreement between the two parties' sealing keys.
        binding: 32 bytes that stand for the set-up and its keys.
        sender: The party that seals.
        receiver: The party that can open.
        plain: The message.

    Returns:
        The ciphertext, `SEAL_OVERHEAD` bytes longer than `plain`.
    """
    key = agreed.derive("seal", binding, sender, receiver)
    return AESGCM(key.reveal()).encrypt(_NONCE, plain, _info("seal", binding, sender, receiver))


def open_sealed(agreed: Secret, binding: bytes, sender: PartyId, receiver: PartyId, sealed: bytes) -> bytes:
    """Return the message that `sender` sealed for `receiver` under this binding.

    Raises:
        SealError: If the message was altered or truncated, or was sealed by or for another party or in another set-up.
    """
    key = agreed.derive("seal", binding, sender, receiver)
    try:
        return AESGCM(key.reveal()).decrypt(_NONCE, sealed, _info("seal", binding, sender, receiver))
    except InvalidTag:
        raise SealError(
            "sealed shares",
            expected=Phrase("what ", NumberedParty(sender), " sealed for ", NumberedParty(receiver), " in this set-up"),
            got="a ciphertext that does not authenticate",
            where=Phrase(NumberedParty(sender), ", sealed shares"),
        ) from None


def check_public(public: bytes, *, where: str | Phrase) -> X25519PublicKey:
    """Return a public key from its 32 bytes, if they are the one canonical form of a point of high order.

    The canonical form is the number below p. X25519 ignores the topmost bit and reduces the rest modulo p, so that
    several strings of bytes would be one key, and keys are compared as bytes. A key of low order has the shared secret
    zero with any key.

    Raises:
        PublicKeyError: The key is rejected; the message names party and step.
    """
    number = int.from_bytes(public, "little")
    if number >= _P:
        raise PublicKeyError(
            "public key",
            expected="a number below 2^255 - 19, the one form of a key",
            got="another form",
            where=where,
        )
    if number in _LOW_ORDER:
        raise PublicKeyError(
            "public key", expected="an X25519 point of high order", got="one that agrees on nothing", where=where
        )
    return X25519PublicKey.from_public_bytes(public)


def _info(purpose: Purpose, binding: bytes, first: PartyId, second: PartyId) -> bytes:
    """Encode a key's context unambiguously: no purpose contains a bar, and what follows it has a fixed length."""
    return b"|".join((PROTOCOL, purpose.encode(), binding + first.to_bytes(8, "big") + second.to_bytes(8, "big")))
