import dataclasses

import numpy as np
import pytest

from common.errors import DropoutError, ProtocolError
from common.secagg import masks
from common.secagg.keys import KeyPair, Secret
from common.secagg.messages import KeyAdvert, UnmaskShares
from server import secagg
from tests.common.secagg.rounds import Round, context, entropy


def test_everybody_stays():
    run = Round(context()).advertise().share().mask()
    assert run.survivors == {0, 1, 2, 3}
    total = run.unmask()
    assert total.dtype == np.int64
    assert total.tolist() == run.expected()


def test_a_party_drops_at_each_step():
    run = Round(context(7, parties=(1, 4, 5, 20, 21, 30, 1000), threshold=3)).advertise({1, 4, 5, 20, 21, 30})
    run.share({1, 4, 5, 20, 30}).mask({1, 5, 20, 30})
    assert run.survivors == {1, 5, 20, 30}
    assert run.unmask({5, 20, 30}).tolist() == run.expected()


def test_any_threshold_survivors_unmask_alike():
    for answering in ({0, 1}, {2, 3}, {0, 3}, {0, 1, 2, 3}):
        run = Round(context(5)).advertise().share().mask({0, 1, 2, 3})
        assert run.unmask(answering).tolist() == run.expected()


# Step 1


def test_broadcast_is_sorted_and_holds_only_those_that_answered():
    run = Round(context()).advertise({0, 1, 3})
    _, roster = secagg.collect_adverts(context(), dict(reversed(run.adverts.items())))
    assert list(roster) == [0, 1, 3]
    assert roster == run.adverts


@pytest.mark.parametrize("field", ["mask_public", "seal_public"])
@pytest.mark.parametrize("key", [bytes(32), b"\x01" + bytes(31)], ids=["zero", "one"])
def test_low_order_keys_are_refused_by_name(field, key):
    run = Round(context()).advertise()
    bad = dataclasses.replace(run.adverts[2], **{field: key})
    with pytest.raises(ProtocolError, match="party 2, advertise"):
        secagg.collect_adverts(context(), run.adverts | {2: bad})


def test_copied_keys_are_refused_by_name():
    run = Round(context()).advertise()
    with pytest.raises(ProtocolError, match="party 2, advertise"):
        secagg.collect_adverts(context(), run.adverts | {2: run.adverts[1]})
    twice = KeyAdvert(mask_public=run.adverts[2].seal_public, seal_public=run.adverts[2].seal_public)
    with pytest.raises(ProtocolError, match="party 2, advertise"):
        secagg.collect_adverts(context(), run.adverts | {2: twice})


def test_strangers_and_too_few_keys_are_refused():
    run = Round(context()).advertise()
    with pytest.raises(ProtocolError, match=r"\[8\]; at advertise"):
        secagg.collect_adverts(context(), run.adverts | {8: run.adverts[1]})
    with pytest.raises(DropoutError, match="at least 2; got 1; at advertise"):
        secagg.collect_adverts(context(), {0: run.adverts[0]})


# Step 2


def test_inboxes_hold_what_the_sharing_peers_sealed():
    run = Round(context()).advertise().share({0, 1, 3})
    assert run.inboxes == {
        receiver: {sender: run.sealed[sender][receiver] for sender in (0, 1, 3) if sender != receiver}
        for receiver in (0, 1, 3)
    }


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda sealed: sealed | {9: sealed[1]}, ProtocolError, r"\[9\]; at share"),
        (lambda sealed: sealed | {1: {0: sealed[1][0], 2: sealed[1][2]}}, ProtocolError, "party 1, share"),
        (lambda sealed: sealed | {1: sealed[1] | {1: sealed[1][0]}}, ProtocolError, "party 1, share"),
        (lambda sealed: sealed | {1: sealed[1] | {0: sealed[1][0][:-1]}}, ProtocolError, "party 1, share"),
        (lambda sealed: sealed | {1: sealed[1] | {0: None}}, ProtocolError, "party 1, share"),
        (lambda sealed: {0: sealed[0], 1: sealed[1]}, DropoutError, "at least 3; got 2; at share"),
    ],
    ids=["stranger", "peer left out", "to itself", "truncated", "no bytes", "too few"],
)
def test_bad_shares_are_refused_and_can_be_left_out(change, error, message):
    run = Round(context(threshold=3)).advertise()
    sealed = {party: run.parties[party].share(run.adverts)[1] for party in range(4)}
    with pytest.raises(error, match=message):
        run.coordinator.collect(change(sealed))
    _, inboxes = run.coordinator.collect({party: sealed[party] for party in (0, 2, 3)})
    assert set(inboxes) == {0, 2, 3}


# Step 3


@pytest.mark.parametrize(
    "vector",
    [
        np.zeros(4, np.uint64),
        np.zeros((5, 1), np.uint64),
        np.zeros(5, np.int64),
        np.zeros(5),
        np.zeros(5, ">u8"),
        [0, 0, 0, 0, 0],
        None,
    ],
    ids=["short", "two axes", "signed", "float", "big-endian", "list", "nothing"],
)
def test_malformed_vectors_are_refused_by_name_and_leave_the_total_alone(vector):
    run = Round(context()).advertise().share()
    with pytest.raises(ProtocolError, match="party 2, mask"):
        run.coordinator.add(2, vector)
    assert run.mask().unmask().tolist() == run.expected()


def test_a_vector_counts_once():
    run = Round(context()).advertise().share()
    _, masked = run.parties[0].mask(run.inboxes[0], np.zeros(5, np.int64))
    run.coordinator.add(0, masked)
    with pytest.raises(ProtocolError, match="a second one; at party 0, mask"):
        run.coordinator.add(0, masked)


def test_vectors_of_those_who_never_shared_stay_out():
    run = Round(context()).advertise().share({0, 1, 2})
    with pytest.raises(ProtocolError, match=r"\[3\]; at mask"):
        run.coordinator.add(3, np.zeros(5, np.uint64))
    with pytest.raises(ProtocolError, match=r"\[8\]; at mask"):
        run.coordinator.add(8, np.zeros(5, np.uint64))
    assert run.mask().unmask().tolist() == run.expected()


def test_a_late_vector_stays_out():
    run = Round(context()).advertise().share()
    waiting = run.coordinator
    _, late = run.parties[3].mask(run.inboxes[3], np.zeros(5, np.int64))
    run.mask({0, 1, 2})
    with pytest.raises(ProtocolError, match="spent state; at mask"):
        waiting.add(3, late)
    assert run.unmask().tolist() == run.expected()


def test_a_late_vector_stays_masked_after_its_pair_masks_are_known():
    """What the coordinator knows after unmasking without party 3 leaves party 3's own mask on its late vector."""
    asked = context(length=1000)
    run = Round(asked).advertise().share()
    _, late = run.parties[3].mask(run.inboxes[3], np.zeros(1000, np.int64))
    run.mask({0, 1, 2}).unmask()
    secrets = secagg._recover(asked, run.unmask_shares, run.survivors, [0, 1, 2, 3])
    pair = KeyPair(secrets[3])
    assert pair.public == run.adverts[3].mask_public
    for peer in (0, 1, 2):
        key = secagg.mask_key(pair, run.adverts[peer].mask_public, asked, 3, peer)
        masks.add_mask(late, key.reveal(), 1)
    only_self_mask = np.zeros(1000, np.uint64)
    seed = Secret(entropy(3)).derive("own self-mask seed", asked, 3, 3)
    masks.add_mask(only_self_mask, seed.reveal(), 1)
    assert np.array_equal(late, only_self_mask)


def test_too_few_vectors_can_still_become_enough():
    run = Round(context(minimum_survivors=3)).advertise().share()
    masked = {
        party: run.parties[party].mask(run.inboxes[party], np.zeros(5, np.int64))[1] for party in run.context.parties
    }
    for party in (0, 1):
        run.coordinator.add(party, masked[party])
    with pytest.raises(DropoutError, match="at least 3; got 2; at mask"):
        run.coordinator.close()
    run.coordinator.add(2, masked[2])
    assert run.coordinator.close()[1] == {0, 1, 2}


# Step 4


def swapped(shares, one, other):
    """The shares of two parties' seeds handed out under each other's names."""
    seeds = {**shares.self_seeds, one: shares.self_seeds[other], other: shares.self_seeds[one]}
    return UnmaskShares(self_seeds=seeds, mask_keys=shares.mask_keys)


def with_seed(shares, owner, share):
    return UnmaskShares(self_seeds={**shares.self_seeds, owner: share}, mask_keys=shares.mask_keys)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda shares: {**shares, 3: shares[1]}, r"\[3\]; at unmask"),
        (lambda shares: {**shares, 1: with_seed(shares[1], 3, bytes(64))}, "party 1, unmask"),
        (lambda shares: {**shares, 1: UnmaskShares(self_seeds=shares[1].self_seeds, mask_keys={})}, "party 1, unmask"),
        (lambda shares: {**shares, 1: with_seed(shares[1], 0, bytes(63))}, "party 1, unmask"),
        (lambda shares: {**shares, 1: with_seed(shares[1], 0, b"\xff" * 64)}, "party 1, unmask"),
        (lambda shares: {**shares, 1: with_seed(shares[1], 2, bytes(64))}, "do not fit together; at party 2, unmask"),
        (lambda shares: {**shares, 1: swapped(shares[1], 0, 2)}, "do not fit together; at party 0, unmask"),
        (lambda shares: {**shares, 0: shares[1], 1: shares[0]}, "do not fit together"),
    ],
    ids=[
        "from a dropped party",
        "seed of a dropped party too",
        "a mask key missing",
        "truncated",
        "out of range",
        "one wrong share",
        "shares of the wrong party",
        "answers swapped",
    ],
)
def test_bad_answers_are_refused_and_can_be_asked_again(change, message):
    run = Round(context(threshold=2)).advertise().share().mask({0, 1, 2})
    shares = {party: run.parties[party].unmask(run.survivors) for party in run.survivors}
    with pytest.raises(ProtocolError, match=message):
        run.coordinator.combine(change(shares))
    assert run.coordinator.combine({0: shares[0], 2: shares[2]}).tolist() == run.expected()


@pytest.mark.parametrize("changes", [{"index": 4}, {"attempt": 1}, {"run": "other"}], ids=str)
def test_answers_of_another_round_are_refused_even_if_all_replay(changes):
    """Nobody dropped, so no recovered mask key could betray the replay."""
    one, other = (Round(asked).advertise().share().mask() for asked in (context(), context(**changes)))
    shares = {party: other.parties[party].unmask(other.survivors) for party in other.survivors}
    with pytest.raises(ProtocolError, match="do not fit together"):
        one.coordinator.combine(shares)


def test_mask_keys_must_be_those_that_were_advertised():
    """Same round, other entropy: the shares fit together and give somebody else's key."""
    one, other = (Round(context(), salt=salt).advertise().share().mask({0, 1, 2}) for salt in (0, 1))
    shares = {party: other.parties[party].unmask(other.survivors) for party in (0, 1, 2)}
    with pytest.raises(ProtocolError, match="advertised one; got another; at party 3, unmask"):
        one.coordinator.combine(shares)


def test_too_few_answers_are_counted():
    run = Round(context(threshold=3)).advertise().share().mask()
    with pytest.raises(DropoutError, match="at least 3; got 2; at unmask"):
        run.unmask({0, 1})


def test_each_state_works_once():
    run = Round(context()).advertise()
    sharing = run.coordinator
    run.share()
    waiting = run.coordinator
    run.mask()
    unmasking = run.coordinator
    run.unmask()
    for again in (
        lambda: sharing.collect(run.sealed),
        waiting.close,
        lambda: waiting.add(0, run.masked[0]),
        lambda: unmasking.combine(run.unmask_shares),
    ):
        with pytest.raises(ProtocolError, match="twice"):
            again()
