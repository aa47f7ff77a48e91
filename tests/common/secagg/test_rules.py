import itertools

import pytest

from common.errors import DropoutError, ProtocolError
from common.secagg import rules


def test_masks_of_a_pair_cancel():
    for party, peer in itertools.permutations(range(5), 2):
        assert rules.sign_of_mask(party, peer) == -rules.sign_of_mask(peer, party)


def test_no_party_sits_where_the_secret_is():
    assert [rules.point_of(party) for party in (0, 1, 5)] == [1, 2, 6]


def test_two_shares_travel_as_one():
    seed, key = rules.halves(b"s" * 64 + b"k" * 64)
    assert (seed, key) == (b"s" * 64, b"k" * 64)


def test_strangers_are_named():
    rules.check_members("mask", {1, 2}, [1, 2, 3])
    with pytest.raises(ProtocolError, match=r"got \[7, 9\]; at mask"):
        rules.check_members("mask", [9, 1, 7], {1, 2, 3})


def test_too_few_are_counted():
    rules.check_enough("mask", 3, 3)
    with pytest.raises(DropoutError, match="at least 3; got 2; at mask"):
        rules.check_enough("mask", 2, 3)
