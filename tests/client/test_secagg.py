import copy
import gc
import pickle

import numpy as np
import pytest
from scipy import stats

from client import secagg
from common.errors import ConfigError, DropoutError, InternalError, PlanError, ProtocolError
from common.secagg import shamir
from common.secagg.keys import KeyPair, Secret, mask_key
from common.secagg.masks import add_mask
from common.secagg.messages import KeyAdvert
from tests.common.secagg.rounds import Round, context, entropy, vectors

ZEROS = np.zeros(5, dtype=np.int64)


def low_order(advert, **changes):
    return KeyAdvert(**{"mask_public": advert.mask_public, "seal_public": advert.seal_public, **changes})


# Step 1


def test_advertising_is_reproducible_and_keys_are_distinct():
    _, one = secagg.advertise(context(), 1, entropy(1))
    _, same = secagg.advertise(context(), 1, entropy(1))
    assert one == same
    assert one.mask_public != one.seal_public


def test_reused_entropy_still_gives_fresh_keys_in_each_round_attempt_and_party():
    adverts = [
        secagg.advertise(context(**changes), party, entropy(1))[1]
        for changes, party in [({}, 1), ({}, 2), ({"index": 4}, 1), ({"attempt": 1}, 1), ({"run": "other"}, 1)]
    ]
    assert len({key for advert in adverts for key in (advert.mask_public, advert.seal_public)}) == 10


def test_a_party_off_the_roster_cannot_take_part():
    with pytest.raises(ProtocolError, match="party 9"):
        secagg.advertise(context(), 9, entropy(9))


def test_short_entropy_is_refused():
    with pytest.raises(InternalError, match="16 bytes"):
        secagg.advertise(context(), 0, bytes(16))


# Step 2


def test_each_peer_gets_one_ciphertext():
    run = Round(context()).advertise().share()
    assert {party: sorted(sealed) for party, sealed in run.sealed.items()} == {
        party: [peer for peer in range(4) if peer != party] for party in range(4)
    }
    texts = [text for sealed in run.sealed.values() for text in sealed.values()]
    assert len(set(texts)) == 12
    assert {len(text) for text in texts} == {144}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda adverts: adverts | {7: adverts[1]}, ProtocolError, r"\[7\]"),
        (lambda adverts: {peer: adverts[peer] for peer in (1, 2, 3)}, ProtocolError, "this party's own"),
        (lambda adverts: adverts | {0: adverts[1]}, ProtocolError, "this party's own"),
        (lambda adverts: adverts | {2: adverts[1]}, ProtocolError, "repeated"),
        (
            lambda adverts: adverts | {2: low_order(adverts[2], seal_public=adverts[1].mask_public)},
            ProtocolError,
            "repeated",
        ),
        (lambda adverts: {0: adverts[0], 1: adverts[1]}, DropoutError, "at least 3; got 2; at share"),
        (lambda adverts: adverts | {2: low_order(adverts[2], seal_public=bytes(32))}, ProtocolError, "party 2"),
    ],
    ids=["stranger", "without me", "my keys replaced", "copied keys", "one copied key", "too few", "low order"],
)
def test_bad_rosters_are_refused(change, error, message):
    run = Round(context(threshold=3)).advertise()
    with pytest.raises(error, match=message):
        run.parties[0].share(change(run.adverts))


# Step 3


def test_masked_vector_is_input_plus_self_mask_plus_signed_pair_masks():
    """The formula of step 3, computed from all private keys."""
    asked = context(3)
    run = Round(asked).advertise().share().mask()
    roots = {party: Secret(entropy(party)) for party in asked.parties}
    pairs = {party: KeyPair(root.derive("own mask key", asked, party, party)) for party, root in roots.items()}
    for party in asked.parties:
        expected = vectors(asked)[party].view(np.uint64).copy()
        add_mask(expected, roots[party].derive("own self-mask seed", asked, party, party).reveal(), 1)
        for peer in set(asked.parties) - {party}:
            key = mask_key(pairs[peer], pairs[party].public, asked, peer, party)
            add_mask(expected, key.reveal(), 1 if party < peer else -1)
        assert np.array_equal(run.masked[party], expected)


def test_masked_vectors_look_uniform():
    """Chi-square over the 256 values of each of 8 byte positions of three parties' masked zeros and of their sums.

    Entropy is fixed, so this cannot flicker; over random entropy the false-alarm rate is 1e-6 (Bonferroni over 40).
    """
    asked = context(3, length=20_000)
    run = Round(asked).advertise().share()
    masked = [run.parties[party].mask(run.inboxes[party], np.zeros(20_000, np.int64))[1] for party in range(3)]
    for vector in (*masked, masked[0] + masked[1], sum(masked)):
        for position in vector.view(np.uint8).reshape(-1, 8).T:
            assert stats.chisquare(np.bincount(position, minlength=256)).pvalue > 1e-6 / 40


@pytest.mark.parametrize("changes", [{"index": 4}, {"attempt": 1}, {"run": "other"}], ids=str)
def test_no_mask_is_used_twice_even_with_the_same_entropy(changes):
    """Masked zeros are the masks. Equal words or a constant difference between rounds would betray reuse."""
    masks = []
    for asked in (context(length=1000), context(length=1000, **changes)):
        run = Round(asked).advertise().share()
        masks += [run.parties[party].mask(run.inboxes[party], np.zeros(1000, np.int64))[1] for party in range(4)]
    words = np.concatenate(masks)
    assert np.unique(words).size == words.size
    for one in range(8):
        for other in range(one):
            assert np.unique(masks[one] - masks[other]).size == 1000
            assert np.unique(masks[one] + masks[other]).size == 1000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda inbox: inbox | {1: inbox[1][:-1] + bytes([inbox[1][-1] ^ 1])}, "party 1"),
        (lambda inbox: inbox | {1: inbox[1][:40]}, "party 1"),
        (lambda inbox: inbox | {1: b""}, "party 1"),
        (lambda inbox: inbox | {1: inbox[2], 2: inbox[1]}, "party 1"),
        (lambda inbox: inbox | {9: inbox[1]}, r"\[9\]"),
        (lambda inbox: inbox | {0: inbox[1]}, r"\[0\]"),
    ],
    ids=["tampered", "truncated", "empty", "swapped senders", "stranger", "from itself"],
)
def test_bad_inboxes_are_refused(change, message):
    run = Round(context()).advertise().share()
    with pytest.raises(ProtocolError, match=message):
        run.parties[0].mask(change(run.inboxes[0]), ZEROS)


def test_shares_meant_for_another_party_are_refused():
    run = Round(context()).advertise().share()
    with pytest.raises(ProtocolError, match="party 1"):
        run.parties[0].mask(run.inboxes[0] | {1: run.inboxes[2][1]}, ZEROS)


@pytest.mark.parametrize("changes", [{"index": 4}, {"attempt": 1}, {"run": "other"}, {"threshold": 3}], ids=str)
def test_shares_of_another_round_are_refused_even_under_the_same_keys(changes):
    """Same entropy on both sides; only the context differs."""
    run, other = (Round(asked).advertise().share() for asked in (context(), context(**changes)))
    with pytest.raises(ProtocolError, match="does not authenticate"):
        run.parties[0].mask(run.inboxes[0] | {1: other.inboxes[0][1]}, ZEROS)


def test_well_sealed_nonsense_is_refused(monkeypatch):
    run = Round(context()).advertise()
    with monkeypatch.context() as patch:
        real = shamir.split_many
        patch.setattr(
            shamir, "split_many", lambda *given, label: [dict.fromkeys(held, b"\xff" * 64) for held in real(*given)]
        )
        _, sealed = run.parties[1].share(run.adverts)
    state, _ = run.parties[0].share(run.adverts)
    with pytest.raises(ProtocolError, match=r"share; expected numbers below.*party 1"):
        state.mask({1: sealed[0]}, ZEROS)


def test_a_low_order_mask_key_is_refused():
    run = Round(context()).advertise()
    adverts = run.adverts | {1: low_order(run.adverts[1], mask_public=bytes(32))}
    inbox = {}
    states = {}
    for party in (0, 2):
        states[party], sealed = run.parties[party].share(adverts)
        inbox[party] = sealed
    # Party 1 itself would not share over such a roster; a stand-in seals for it under its real sealing key.
    honest = Round(context()).advertise()
    _, sealed = honest.parties[1].share(honest.adverts)
    with pytest.raises(ProtocolError, match="party 1, mask key"):
        states[0].mask({1: sealed[0], 2: inbox[2][0]}, ZEROS)


def test_too_few_sharing_is_refused():
    run = Round(context(threshold=3)).advertise().share()
    with pytest.raises(DropoutError, match="at least 3; got 2; at mask"):
        run.parties[0].mask({1: run.inboxes[0][1]}, ZEROS)


@pytest.mark.parametrize(
    "vector",
    [
        np.zeros(4, np.int64),
        np.zeros((5, 1), np.int64),
        np.zeros(5),
        np.full(5, (2**63 - 1) // 4 + 1),
        np.full(5, -(2**63)),
    ],
    ids=["short", "two axes", "float", "could wrap", "smallest"],
)
def test_vectors_that_do_not_fit_are_refused(vector):
    run = Round(context()).advertise().share()
    with pytest.raises(PlanError):
        run.parties[0].mask(run.inboxes[0], vector)


def test_the_input_is_left_alone():
    run = Round(context()).advertise().share()
    vector = ZEROS.copy()
    run.parties[0].mask(run.inboxes[0], vector)
    assert not vector.any()


# Step 4


def test_one_share_for_each_party_and_never_both():
    run = Round(context(5)).advertise({0, 1, 2, 3}).share().mask({0, 1, 2})
    for party in range(3):
        shares = run.parties[party].unmask(run.survivors)
        assert set(shares.self_seeds) == {0, 1, 2}
        assert set(shares.mask_keys) == {3}


@pytest.mark.parametrize(
    ("survivors", "error", "message"),
    [
        ({0, 1}, DropoutError, "at least 3; got 2; at unmask"),
        (set(), ProtocolError, "party 0 among them"),
        ({1, 2, 3}, ProtocolError, "party 0 among them"),
        ({0, 1, 2, 4}, ProtocolError, r"\[4\]"),
        ({0, 1, 2, 9}, ProtocolError, r"\[9\]"),
    ],
    ids=["too few", "nobody", "without me", "one that never shared", "stranger"],
)
@pytest.mark.parametrize("limits", [{"threshold": 3}, {"minimum_survivors": 3}], ids=str)
def test_bad_survivor_sets_are_refused(survivors, error, message, limits):
    run = Round(context(5, **limits)).advertise().share({0, 1, 2, 3}).mask()
    with pytest.raises(error, match=message):
        run.parties[0].unmask(frozenset(survivors))


# One use each


def test_each_state_works_once_whatever_it_is_asked_the_second_time():
    run = Round(context()).advertise()
    advertised = run.parties[0]
    run.share()
    shared = run.parties[0]
    run.mask()
    masked = run.parties[0]
    run.unmask()
    for again in (
        lambda: advertised.share(run.adverts),
        lambda: shared.mask(run.inboxes[0], ZEROS),
        lambda: masked.unmask(frozenset({0, 1, 2})),
        lambda: masked.unmask(run.survivors),
    ):
        with pytest.raises(ProtocolError, match="twice"):
            again()


def test_a_refused_unmasking_is_not_tried_again():
    run = Round(context()).advertise().share().mask()
    with pytest.raises(ProtocolError, match="among them"):
        run.parties[0].unmask(frozenset({1, 2, 3}))
    with pytest.raises(ProtocolError, match="twice"):
        run.parties[0].unmask(run.survivors)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_states_cannot_be_copied(duplicate):
    run = Round(context()).advertise()
    states = [run.parties[0], run.share().parties[0], run.mask().parties[0]]
    for state in states:
        with pytest.raises(TypeError, match="cannot be copied"):
            duplicate(state._held)


def test_nothing_shows_a_secret():
    """Reprs of the states and of all that they reach hold no byte string of a secret."""
    run = Round(context()).advertise()
    states = [run.parties[0], run.share().parties[0], run.mask().parties[0]]
    secrets = [
        Secret(entropy(0)).derive(purpose, context(), 0, 0).reveal()
        for purpose in ("own self-mask seed", "own mask key")
    ]
    for state in states:
        reached = [state, *gc.get_referents(state), *gc.get_referents(state._held)]
        shown = "".join(repr(item) for item in reached)
        assert not any(secret.hex() in shown or repr(secret)[2:-1] in shown for secret in secrets)


def test_the_context_must_be_legal():
    with pytest.raises(ConfigError):
        context(1)
