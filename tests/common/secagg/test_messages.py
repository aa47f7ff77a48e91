import dataclasses
import hashlib
import itertools

import pytest

from common.errors import ConfigError, ProtocolError, PublicKeyError, SignatureError
from common.secagg.graph import neighbours
from common.secagg.messages import AggregationSetup, KeyAdvert, UnmaskShares, signers

FIELDS = {
    "run": "run",
    "attempt": 1,
    "rounds": (0, 4),
    "parties": (0, 1, 2, 5, 9),
    "threshold": 3,
    "minimum_survivors": 2,
    "degree": 4,
    "corrupt": 1,
    "plan_digest": b"p" * 32,
    "roster_digest": b"r" * 32,
}


def changed(**changes):
    return AggregationSetup(**{**FIELDS, **changes})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("run", ""),
        ("attempt", -1),
        ("attempt", 1.0),
        ("attempt", True),
        ("attempt", 2**63),
        ("rounds", ()),
        ("rounds", (1, 0)),
        ("rounds", (0, 0)),
        ("rounds", (-1,)),
        ("rounds", (2**63,)),
        ("parties", (0,)),
        ("parties", ()),
        ("parties", (1, 0, 2, 5, 9)),
        ("parties", (0, 0, 2, 5, 9)),
        ("parties", (-1, 0, 1, 2, 3)),
        ("parties", (0, 1, 2, 3, 2**20)),
        ("threshold", 1),
        ("threshold", 6),
        ("minimum_survivors", 1),
        ("minimum_survivors", 6),
        ("degree", 0),
        ("degree", 5),
        ("degree", 3),
        ("corrupt", -1),
        ("corrupt", 3),
        ("plan_digest", b""),
        ("plan_digest", b"p" * 33),
        ("roster_digest", b"r" * 31),
    ],
)
def test_set_ups_that_cannot_be_run_are_refused(name, value):
    with pytest.raises(ConfigError):
        changed(**{name: value})


def test_one_party_is_told_to_do_without():
    with pytest.raises(ConfigError, match=r"got 1\."):
        changed(parties=(3,))


def test_a_threshold_above_the_holders_is_refused_with_the_numbers():
    with pytest.raises(ConfigError, match=r"threshold;.*\[2, 3\]; got 4"):
        changed(degree=2, threshold=4)


def test_on_the_full_graph_the_threshold_must_exceed_the_corrupt():
    changed(threshold=3, corrupt=2)
    with pytest.raises(ConfigError, match=r"corrupt;.*\[0, 2\]; got 3"):
        changed(threshold=3, corrupt=3)
    changed(degree=2, threshold=2, corrupt=3)


def test_mode_follows_from_the_roster():
    assert changed().mode == "malicious"
    assert changed(roster_digest=b"").mode == "semi-honest"
    assert changed(roster_digest=b"").signers == 0


@pytest.mark.parametrize("corrupt", range(5))
@pytest.mark.parametrize("count", range(5, 9))
def test_two_survivor_sets_never_both_find_enough_signers(count, corrupt):
    """In one round the honest sign once; in two, those that gave a share do not sign. One signer fewer would not do."""
    threshold, honest = 5, count - corrupt
    signers = changed(parties=tuple(range(count)), degree=count - 1, threshold=threshold, corrupt=corrupt).signers

    def two_sets(needed):
        """The first set is signed, or opened, by some honest ones and all corrupt ones; the other by all but these."""
        enough = [first for first in range(honest + 1) if first + corrupt >= min(needed, threshold)]
        return any(honest - first + corrupt >= needed for first in enough)

    assert not two_sets(signers)
    assert two_sets(signers - 1)


@pytest.mark.parametrize(("degree", "threshold", "survivors"), [(2, 2, 6), (2, 3, 7), (4, 3, 6), (4, 4, 8), (6, 4, 7)])
def test_on_a_sparse_graph_fewer_holders_than_are_counted_on_open_no_sum(degree, threshold, survivors):
    count = 8
    ring = neighbours(range(count), degree, bytes(32))
    honest_and_all = signers(count, corrupt=0, degree=degree, threshold=threshold, survivors=survivors)
    fewer = max(0, count - honest_and_all)  # one fewer than the holders that make so many sign
    for holders in map(set, itertools.combinations(range(count), fewer)):
        open_ones = [owner for owner in ring if len((ring[owner] | {owner}) & holders) >= threshold]
        assert len(open_ones) < survivors


def test_quorum_is_the_strictest_of_the_three():
    assert changed(roster_digest=b"").quorum == 3
    assert changed(roster_digest=b"", minimum_survivors=5).quorum == 5
    assert changed(corrupt=2).quorum == 5
    assert changed(corrupt=2, threshold=4).quorum == 4


def test_binding_is_a_hash_of_every_field():
    numbers = [3, 1, 3, 2, 4, 1, 32, 2, 0, 4, 0, 1, 2, 5, 9]
    encoded = b"".join(number.to_bytes(8, "big") for number in numbers) + b"run" + b"p" * 32 + b"r" * 32
    assert changed().binding == hashlib.sha256(b"caucus protocol 5|set-up|" + encoded).digest()


def test_every_field_changes_the_binding():
    others = {
        "run": "ruN",
        "attempt": 2,
        "rounds": (0, 5),
        "parties": (0, 1, 2, 5, 8),
        "threshold": 4,
        "minimum_survivors": 3,
        "degree": 2,
        "corrupt": 2,
        "plan_digest": b"q" * 32,
        "roster_digest": b"s" * 32,
    }
    bindings = {changed().binding} | {changed(**{name: value}).binding for name, value in others.items()}
    assert others.keys() == {field.name for field in dataclasses.fields(AggregationSetup) if field.init}
    assert len(bindings) == len(others) + 1


@pytest.mark.parametrize("key", [b"", bytes(31), bytes(33), "x" * 32, None], ids=repr)
def test_keys_of_other_sizes_are_refused(key):
    with pytest.raises(PublicKeyError, match="32 bytes"):
        KeyAdvert(seal_public=key, mask_publics=(bytes(32),))
    with pytest.raises(PublicKeyError, match="32 bytes"):
        KeyAdvert(seal_public=bytes(32), mask_publics=(bytes(32), key))


def test_signatures_are_bytes():
    with pytest.raises(SignatureError, match="got NoneType"):
        KeyAdvert(seal_public=bytes(32), mask_publics=(bytes(32),), signature=None)


def test_both_kinds_of_share_for_one_party_are_refused():
    with pytest.raises(ProtocolError, match=r"both for \[2\]"):
        UnmaskShares(self_seeds={1: b"", 2: b""}, mask_keys={2: b"", 3: b""})


def test_shares_have_no_repr():
    assert repr(UnmaskShares(self_seeds={1: b"secret"}, mask_keys={2: b"secret"})) == "UnmaskShares()"
