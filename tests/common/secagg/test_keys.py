import hashlib
import hmac

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from common.errors import InternalError, PublicKeyError, SealError
from common.secagg.keys import SEAL_OVERHEAD, KeyPair, Secret, check_public, mask_key, open_sealed, seal

LOW_ORDER = [
    bytes(32),
    b"\x01" + bytes(31),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
    bytes.fromhex("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
    bytes.fromhex("edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
    bytes.fromhex("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
]
"""The points of order 1, 2, 4 and 8 and their other encodings (Curve25519, Bernstein 2006)."""


BINDING, OTHER = b"b" * 32, b"o" * 32

SECRET = Secret(bytes(range(32)))


def pair(number):
    return KeyPair(Secret(bytes([number]) * 32))


def test_agreement_follows_rfc_7748():
    """Section 6.1: Bob's private key and Alice's public one."""
    bob = KeyPair(Secret(bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")))
    alice = bytes.fromhex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
    assert bob.public.hex() == "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
    agreed = bob.agree(alice, where="test").reveal()
    assert agreed.hex() == "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"


def test_derivation_follows_rfc_5869_with_all_names_in_its_info():
    info = b"caucus protocol 5|mask|" + BINDING + (2).to_bytes(8, "big") + (5).to_bytes(8, "big")
    extracted = hmac.digest(bytes(32), SECRET.reveal(), hashlib.sha256)
    expected = hmac.digest(extracted, info + b"\x01", hashlib.sha256)
    assert SECRET.derive("mask", BINDING, 2, 5).reveal() == expected


def test_every_name_changes_the_key():
    keys = [
        SECRET.derive("mask", BINDING, 2, 5),
        SECRET.derive("seal", BINDING, 2, 5),
        SECRET.derive("mask", BINDING, 5, 2),
        SECRET.derive("mask", BINDING, 1, 5),
        SECRET.derive("mask", OTHER, 2, 5),
        Secret(bytes(32)).derive("mask", BINDING, 2, 5),
    ]
    assert len({key.reveal() for key in keys}) == len(keys)


def test_both_sides_of_a_pair_get_one_mask_key():
    one, other = pair(1), pair(2)
    assert mask_key(one, other.public, BINDING, 0, 5).reveal() == mask_key(other, one.public, BINDING, 5, 0).reveal()


def test_sealed_messages_open_only_as_what_they_are():
    agreed, stranger = pair(1).agree(pair(2).public, where="test"), pair(1).agree(pair(3).public, where="test")
    sealed = seal(agreed, BINDING, 0, 5, b"two shares")
    assert len(sealed) == len(b"two shares") + SEAL_OVERHEAD
    assert open_sealed(agreed, BINDING, 0, 5, sealed) == b"two shares"
    wrong = [
        (stranger, BINDING, 0, 5, sealed),
        (agreed, BINDING, 5, 0, sealed),
        (agreed, BINDING, 1, 5, sealed),
        (agreed, BINDING, 0, 2, sealed),
        (agreed, OTHER, 0, 5, sealed),
        (agreed, BINDING, 0, 5, sealed[:-1]),
        (agreed, BINDING, 0, 5, b""),
        (agreed, BINDING, 0, 5, sealed + b"x"),
        *((agreed, BINDING, 0, 5, _flipped(sealed, place)) for place in range(len(sealed))),
    ]
    for case in wrong:
        with pytest.raises(SealError, match="authenticate"):
            open_sealed(*case)


PRIME = 2**255 - 19
OTHER_FORMS = [
    *((number + PRIME, number) for number in range(19)),  # all that fit into 255 bits
    *((number + 2**255, number) for number in (2, 9, PRIME - 2)),
    *((number + PRIME + 2**255, number) for number in (2, 9, 18)),
]
"""Numbers that X25519 takes for a smaller one, with that one."""


@pytest.mark.parametrize(("other", "number"), OTHER_FORMS, ids=lambda number: f"{number:x}"[-8:])
def test_a_key_has_one_form(other, number):
    one, same = (value.to_bytes(32, "little") for value in (number, other))
    if one not in LOW_ORDER:
        private = X25519PrivateKey.from_private_bytes(bytes(range(32)))
        shared = {private.exchange(X25519PublicKey.from_public_bytes(public)) for public in (one, same)}
        assert len(shared) == 1  # the library takes both for one key
        check_public(one, where="test")
    with pytest.raises(PublicKeyError, match="at party 3, advertise"):
        check_public(same, where="party 3, advertise")
    with pytest.raises(PublicKeyError, match="party 3"):
        mask_key(pair(1), same, BINDING, 0, 3)


def test_keys_that_are_made_here_have_that_form():
    for number in range(200):
        check_public(pair(number).public, where="test")


@pytest.mark.parametrize("top_bit", [0, 0x80])
@pytest.mark.parametrize("public", LOW_ORDER, ids=lambda public: public.hex()[:8])
def test_low_order_points_are_refused(public, top_bit):
    public = public[:-1] + bytes([public[-1] | top_bit])
    with pytest.raises(ValueError, match="shared key"):  # what the library itself says
        X25519PrivateKey.from_private_bytes(bytes(range(32))).exchange(X25519PublicKey.from_public_bytes(public))
    with pytest.raises(PublicKeyError, match="party 3"):
        check_public(public, where="party 3, advertise")
    with pytest.raises(PublicKeyError, match="party 3"):
        mask_key(pair(1), public, BINDING, 0, 3)


def test_good_points_pass():
    """The smallest numbers that are no point of low order among them."""
    for number in range(2, 20):
        public = number.to_bytes(32, "little")
        check_public(public, where="test")
        pair(1).agree(public, where="test")


def test_secrets_show_nothing():
    secret, keys = Secret(b"\xab" * 32), KeyPair(Secret(b"\xab" * 32))
    for text in (repr(secret), str(secret), repr(keys), f"{keys}"):
        assert "ab" * 4 not in text.replace("\\x", "")
    assert keys.private().reveal() == b"\xab" * 32


def test_secrets_of_other_sizes_are_our_bug():
    with pytest.raises(InternalError, match="31 bytes"):
        Secret(bytes(31))


def _flipped(text, place):
    return text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :]
