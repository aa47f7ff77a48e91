import dataclasses
import hashlib
import itertools

import pytest

from common.errors import DropoutError, MembershipError, PublicKeyError, SealError, SignatureError
from common.secagg import rules
from tests.support.secagg_rounds import Run, identity, roster, setup


def checked(run, adverts, aggregation=None):
    return rules.check_adverts(aggregation or run.setup, adverts, run.roster, "share")


def test_transcript_is_a_hash_of_all_that_was_advertised():
    run = Run(setup(2, rounds=(5, 6))).advertise()
    text = b"".join(
        b"caucus protocol 5|advert|"
        + run.setup.binding
        + party.to_bytes(8, "big")
        + run.adverts[party].seal_public
        + b"".join(run.adverts[party].mask_publics)
        for party in (0, 1)
    )
    transcript, graph = checked(run, dict(reversed(run.adverts.items())))
    assert transcript == hashlib.sha256(b"caucus protocol 5|adverts|" + text).digest()
    assert graph == {0: {1}, 1: {0}}


def test_transcript_changes_with_who_advertised_and_with_every_key():
    run = Run(setup()).advertise()
    others = [
        {party: run.adverts[party] for party in (0, 1, 2)},
        run.adverts | {1: dataclasses.replace(run.adverts[1], seal_public=b"\x09" * 32)},
        run.adverts | {1: dataclasses.replace(run.adverts[1], mask_publics=run.adverts[1].mask_publics[::-1])},
    ]
    assert len({checked(run, adverts)[0] for adverts in (run.adverts, *others)}) == 4


def test_the_graph_is_regular_symmetric_and_follows_from_the_transcript():
    aggregation = setup(20, degree=6, threshold=4)
    run, other = Run(aggregation).advertise(), Run(aggregation, salt=1).advertise()
    graph = checked(run, run.adverts)[1]
    assert {len(peers) for peers in graph.values()} == {6}
    assert all(party in graph[peer] and party != peer for party in graph for peer in graph[party])
    assert graph == checked(run, run.adverts)[1]
    assert graph != checked(other, other.adverts)[1]


def test_of_a_sparse_graph_s_parties_few_enough_are_all_neighbours():
    run = Run(setup(20, degree=6, threshold=4)).advertise()
    graph = checked(run, {party: run.adverts[party] for party in range(5)})[1]
    assert graph == {party: set(range(5)) - {party} for party in range(5)}


def test_a_signed_advert_is_good_for_its_party_set_up_and_keys_alone():
    run = Run(setup(malicious=True)).advertise()
    good = run.adverts[1]
    checked(run, run.adverts)
    for bad in (
        dataclasses.replace(good, signature=b""),
        dataclasses.replace(good, signature=run.adverts[2].signature),
        dataclasses.replace(good, mask_publics=good.mask_publics[::-1]),
        dataclasses.replace(good, seal_public=b"\x09" * 32),
        dataclasses.replace(good, signature=identity(3).sign(rules.advert_statement(run.setup, 1, good))),
    ):
        with pytest.raises(SignatureError, match="at party 1"):
            checked(run, run.adverts | {1: bad})
    for aggregation in (
        setup(malicious=True, attempt=1),
        setup(malicious=True, threshold=3),
        setup(malicious=True, run="x"),
    ):
        with pytest.raises(SignatureError, match="at party 0"):
            checked(run, run.adverts, aggregation)


def test_no_key_is_advertised_twice_in_one_form_or_two():
    run = Run(setup()).advertise()
    good, key, taken = run.adverts[1], run.adverts[0].seal_public, run.adverts[0].mask_publics[0]
    again = key[:-1] + bytes([key[-1] | 0x80])  # X25519 ignores the topmost bit
    for changes, complaint in (
        ({"seal_public": key}, "a repeated one"),
        ({"seal_public": again}, "another form"),
        ({"seal_public": taken}, "a repeated one"),
        ({"mask_publics": (taken, *good.mask_publics[1:])}, "a repeated one"),
    ):
        with pytest.raises(PublicKeyError, match=f"got {complaint}; at party 1"):
            checked(run, run.adverts | {1: dataclasses.replace(good, **changes)})


@pytest.mark.parametrize("count", [2, 4])
def test_an_advert_has_one_mask_key_for_each_round(count):
    run = Run(setup()).advertise()
    publics = (*run.adverts[1].mask_publics, b"\x09" * 32)[:count]
    with pytest.raises(PublicKeyError, match=rf"got {count}; at party 1"):
        checked(run, run.adverts | {1: dataclasses.replace(run.adverts[1], mask_publics=publics)})


def test_masks_for_one_query_are_bound_to_the_round_and_to_it():
    binding = rules.round_context(bytes(32), 3)
    bound = {rules.about(transcript, subject) for transcript in (binding, bytes(32)) for subject in (b"a", b"b", b"")}
    assert len(bound) == 6
    assert {len(transcript) for transcript in bound} == {32}


def test_the_statement_on_survivors_tells_all_sets_and_rounds_apart():
    binding = rules.round_context(bytes(32), 3)
    numbers = [3, 0, 1, 2, 2, 0, 2]
    expected = b"caucus protocol 5|survivors|" + binding + b"".join(number.to_bytes(8, "big") for number in numbers)
    assert rules.survivors_statement(binding, {2, 1, 0}, {2, 0}) == expected
    others = {
        rules.survivors_statement(rules.round_context(binding_, index), sharers, survivors)
        for binding_ in (bytes(32), b"x" * 32)
        for index in (3, 4)
        for sharers in ({0, 1, 2}, {0, 1, 2, 3})
        for survivors in ({0, 1}, {0, 1, 2})
    }
    assert len(others) == 16


def test_enough_survivors_must_have_signed():
    aggregation, identities, statement = setup(4, malicious=True), roster(range(4)), b"statement"
    signatures = {party: identity(party).sign(statement) for party in range(4)}

    def check(signers, **changes):
        chosen = {party: signatures[party] for party in signers}
        rules.check_signatures(aggregation, identities, statement, {0, 1, 2}, chosen | changes.get("bad", {}))

    check({0, 1, 2})
    with pytest.raises(DropoutError, match="got 2"):
        check({0, 1})
    with pytest.raises(MembershipError, match="got party 3;"):
        check({0, 1, 3})
    with pytest.raises(SignatureError, match="at party 2"):
        check({0, 1, 2}, bad={2: signatures[1]})


def test_ciphertexts_hold_two_shares_for_each_round():
    rules.check_sealed(setup(), bytes(3 * 128 + 16), where="test")
    for bad in (b"", bytes(3 * 128 + 15), bytes(4 * 128 + 16), "x" * 400, None):
        with pytest.raises(SealError, match="expected 400 bytes"):
            rules.check_sealed(setup(), bad, where="test")


def test_masks_of_a_pair_cancel():
    for party, peer in itertools.permutations(range(5), 2):
        assert rules.sign_of_mask(party, peer) == -rules.sign_of_mask(peer, party)


def test_no_party_sits_where_the_secret_is():
    assert [rules.point_of(party) for party in (0, 1, 5)] == [1, 2, 6]


def test_two_shares_travel_as_one():
    seed, key = rules.split_shares(b"s" * 64 + b"k" * 64)
    assert (seed, key) == (b"s" * 64, b"k" * 64)


def test_strangers_are_named():
    rules.check_members("mask", {1, 2}, [1, 2, 3])
    with pytest.raises(MembershipError, match="party 7, party 9"):
        rules.check_members("mask", [9, 1, 7], {1, 2, 3})


def test_absent_ones_are_named_where_all_are_needed():
    rules.check_exactly("share", [2, 1], {1, 2})
    for parties in ([1], [1, 2, 3]):
        with pytest.raises(MembershipError, match=r"got party 1"):
            rules.check_exactly("share", parties, {1, 2})


def test_too_few_are_counted():
    rules.check_enough("mask", 3, 3)
    with pytest.raises(DropoutError, match="got 2"):
        rules.check_enough("mask", 2, 3)


@pytest.mark.parametrize("aggregation", [setup(), setup(20, degree=6, threshold=4)], ids=["full", "sparse"])
def test_the_graph_that_parties_share_cannot_be_changed(aggregation):
    run = Run(aggregation).advertise()
    with pytest.raises(TypeError):
        checked(run, run.adverts)[1][0] = frozenset()
