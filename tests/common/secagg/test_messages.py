import dataclasses
import hashlib

import pytest

from common.errors import ConfigError, ProtocolError
from common.secagg.messages import KeyAdvert, RoundContext, UnmaskShares

FIELDS = {
    "run": "run",
    "index": 1,
    "attempt": 0,
    "parties": (0, 1, 2, 5),
    "threshold": 3,
    "minimum_survivors": 2,
    "length": 3,
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("run", ""),
        ("index", -1),
        ("index", 1.0),
        ("index", 2**63),
        ("attempt", -1),
        ("parties", (0,)),
        ("parties", ()),
        ("parties", (1, 0)),
        ("parties", (0, 0)),
        ("parties", (-1, 0)),
        ("parties", (0, 2**20)),
        ("threshold", 1),
        ("threshold", 5),
        ("minimum_survivors", 1),
        ("minimum_survivors", 5),
        ("length", 0),
    ],
)
def test_rounds_that_cannot_be_run_are_refused(name, value):
    with pytest.raises(ConfigError):
        RoundContext(**{**FIELDS, name: value})


def test_quorum_is_the_stricter_of_the_two():
    assert RoundContext(**FIELDS).quorum == 3
    assert RoundContext(**{**FIELDS, "minimum_survivors": 4}).quorum == 4


def test_binding_is_a_hash_of_every_field():
    numbers = [1, 0, 3, 2, 3, 0, 1, 2, 5]
    expected = (3).to_bytes(8, "big") + b"run" + b"".join(number.to_bytes(8, "big") for number in numbers)
    assert RoundContext(**FIELDS).binding == hashlib.sha256(expected).digest()


def test_contexts_are_equal_by_their_fields_and_frozen():
    assert RoundContext(**FIELDS) == RoundContext(**FIELDS)
    assert RoundContext(**FIELDS) != RoundContext(**{**FIELDS, "index": 2})
    with pytest.raises(dataclasses.FrozenInstanceError):
        RoundContext(**FIELDS).length = 4


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33), "x" * 32, None], ids=repr)
def test_keys_of_other_sizes_are_refused(key):
    with pytest.raises(ProtocolError, match="32 bytes"):
        KeyAdvert(mask_public=key, seal_public=bytes(32))
    with pytest.raises(ProtocolError, match="32 bytes"):
        KeyAdvert(mask_public=bytes(32), seal_public=key)


def test_keys_of_the_right_size_are_kept():
    advert = KeyAdvert(mask_public=bytes(32), seal_public=b"x" * 32)
    assert (advert.mask_public, advert.seal_public) == (bytes(32), b"x" * 32)


def test_shares_have_no_repr():
    assert repr(UnmaskShares(self_seeds={1: b"secret"}, mask_keys={2: b"secret"})) == "UnmaskShares()"
