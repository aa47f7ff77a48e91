import dataclasses

import numpy as np
import pytest

from common.errors import (
    DropoutError,
    MembershipError,
    ProtocolError,
    PublicKeyError,
    ReplayError,
    SealError,
    ShareError,
    SignatureError,
)
from common.secagg import masks
from common.secagg.keys import KeyPair, Secret
from common.secagg.messages import UnmaskShares
from common.secagg.rules import check_adverts, round_context
from server.federation import secagg
from tests.support.secagg_rounds import Run, entropy, roster, setup

SPARSE = {"count": 12, "degree": 6, "threshold": 4}


@pytest.mark.parametrize("malicious", [False, True])
@pytest.mark.parametrize("shape", [{}, {"count": 2}, SPARSE], ids=["full", "two", "sparse"])
def test_everybody_stays_for_all_rounds(shape, malicious):
    run = Run(setup(**shape, malicious=malicious)).ready()
    for index, length in ((3, 5), (4, 1), (7, 40_000)):
        one = run.open(index, length).mask().agree()
        assert one.survivors == set(run.setup.parties)
        total = one.unmask()
        assert total.dtype == np.int64
        assert total.tolist() == one.expected()


@pytest.mark.parametrize("malicious", [False, True])
def test_a_party_drops_at_each_step(malicious):
    threshold, answering = (4, {1, 5, 20, 30}) if malicious else (2, {5, 20})
    aggregation = setup(parties=(1, 4, 5, 20, 21, 30, 1000), threshold=threshold, malicious=malicious)
    run = Run(aggregation).advertise({1, 4, 5, 20, 21, 30}).share({1, 4, 5, 20, 30}).receive()
    one = run.open().mask({1, 5, 20, 30}).agree()
    assert one.survivors == {1, 5, 20, 30}
    assert one.unmask(answering).tolist() == one.expected()


def test_who_misses_one_round_is_in_the_next():
    run = Run(setup()).ready()
    for index, present in ((3, {0, 1, 2}), (4, {1, 2, 3}), (7, {0, 1, 2, 3})):
        one = run.open(index).mask(present).agree()
        assert one.survivors == present
        assert one.unmask().tolist() == one.expected()


def test_a_round_can_be_left_out_or_fail_without_harm_to_the_next():
    run = Run(setup(minimum_survivors=3)).ready()
    with pytest.raises(DropoutError):
        run.open(3).mask({0, 1})
    one = run.open(7).mask().agree()
    assert one.unmask().tolist() == one.expected()


def test_a_late_inbox_still_makes_a_party_ready():
    run = Run(setup()).advertise().share().receive({0, 1, 2})
    one = run.open(3).mask().agree()
    assert one.survivors == {0, 1, 2}
    assert one.unmask().tolist() == one.expected()
    two = run.receive({3}).open(4).mask().agree()
    assert two.survivors == {0, 1, 2, 3}
    assert two.unmask().tolist() == two.expected()


def test_any_threshold_survivors_unmask_alike():
    for answering in ({0, 1}, {2, 3}, {0, 3}, {0, 1, 2, 3}):
        one = Run(setup(5)).ready().open().mask({0, 1, 2, 3}).agree()
        assert one.unmask(answering).tolist() == one.expected()


def test_in_a_sparse_graph_a_party_needs_threshold_of_its_neighbours():
    """Eight answers are more than the threshold, but with party 0's own they hold only three of its shares."""
    run = Run(setup(**SPARSE)).ready()
    graph = check_adverts(run.setup, run.adverts, None, "test")[1]
    one = run.open().mask().agree()
    shares = {party: one.parties[party].unmask({}) for party in range(12)}
    few = {party: shares[party] for party in set(range(12)) - set(sorted(graph[0])[:4])}
    with pytest.raises(DropoutError, match="got 3; at party 0, unmask"):
        one.coordinator.combine(few)
    assert one.coordinator.combine(shares).tolist() == one.expected()


# Step 1


def test_broadcast_is_sorted_and_holds_only_those_that_answered():
    run = Run(setup()).advertise({0, 1, 3})
    _, keys = secagg.collect_adverts(setup(), dict(reversed(run.adverts.items())), roster=None)
    assert list(keys) == [0, 1, 3]
    assert keys == run.adverts


def test_bad_keys_are_refused_by_name():
    run = Run(setup()).advertise()
    good = run.adverts[2]
    for bad in (
        dataclasses.replace(good, seal_public=bytes(32)),
        dataclasses.replace(good, mask_publics=(*good.mask_publics[:2], bytes(32))),
        dataclasses.replace(good, mask_publics=good.mask_publics[:2]),
        dataclasses.replace(good, seal_public=good.mask_publics[0]),
        run.adverts[1],
    ):
        with pytest.raises(PublicKeyError, match="party 2, advertise"):
            secagg.collect_adverts(setup(), run.adverts | {2: bad}, roster=None)


def test_unsigned_keys_are_refused_by_name():
    run = Run(setup(malicious=True)).advertise()
    bad = dataclasses.replace(run.adverts[2], signature=b"")
    with pytest.raises(SignatureError, match="party 2, advertise"):
        secagg.collect_adverts(run.setup, run.adverts | {2: bad}, roster=run.roster)


def test_strangers_and_too_few_keys_are_refused():
    run = Run(setup()).advertise()
    with pytest.raises(MembershipError, match="party 8; at advertise"):
        secagg.collect_adverts(setup(), run.adverts | {8: run.adverts[1]}, roster=None)
    with pytest.raises(DropoutError, match="got 1; at advertise"):
        secagg.collect_adverts(setup(), {0: run.adverts[0]}, roster=None)


def test_the_roster_must_be_that_of_the_set_up():
    run = Run(setup(malicious=True)).advertise()
    for identities in (None, roster(range(5))):
        with pytest.raises(MembershipError, match="roster"):
            secagg.collect_adverts(run.setup, run.adverts, roster=identities)


# Step 2


def test_inboxes_hold_what_the_sharing_neighbours_sealed():
    for aggregation, present in ((setup(), {0, 1, 3}), (setup(**SPARSE), set(range(11)))):
        run = Run(aggregation).advertise().share(present)
        graph = check_adverts(aggregation, run.adverts, None, "test")[1]
        assert run.coordinator.sharers == present
        assert run.inboxes == {
            receiver: {sender: run.sealed[sender][receiver] for sender in present & graph[receiver]}
            for receiver in present
        }


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda sealed: sealed | {9: sealed[1]}, MembershipError, "party 9; at share"),
        (lambda sealed: sealed | {1: {0: sealed[1][0], 2: sealed[1][2]}}, MembershipError, "party 1, share"),
        (lambda sealed: sealed | {1: sealed[1] | {1: sealed[1][0]}}, MembershipError, "party 1, share"),
        (lambda sealed: sealed | {1: sealed[1] | {0: sealed[1][0][:-1]}}, SealError, "party 1, share"),
        (lambda sealed: sealed | {1: sealed[1] | {0: None}}, SealError, "party 1, share"),
        (lambda sealed: {0: sealed[0], 1: sealed[1]}, DropoutError, "at least 3; got 2; at share"),
    ],
    ids=["stranger", "peer left out", "to itself", "truncated", "no bytes", "too few"],
)
def test_bad_shares_are_refused_and_can_be_left_out(change, error, message):
    run = Run(setup(threshold=3)).advertise()
    sealed = {party: run.parties[party].share(run.adverts)[1] for party in range(4)}
    with pytest.raises(error, match=message):
        run.coordinator.collect(change(sealed))
    _, inboxes = run.coordinator.collect({party: sealed[party] for party in (0, 2, 3)})
    assert set(inboxes) == {0, 2, 3}


def test_too_few_sharing_neighbours_are_refused():
    run = Run(setup(**SPARSE)).advertise()
    graph = check_adverts(run.setup, run.adverts, None, "test")[1]
    with pytest.raises(DropoutError, match="got 3; at party 0, share"):
        run.share(set(range(12)) - set(sorted(graph[0])[:4]))


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
    one = Run(setup()).ready().open()
    with pytest.raises(ProtocolError, match="party 2, mask"):
        one.coordinator.add(2, vector)
    assert one.mask().agree().unmask().tolist() == one.expected()


def test_a_vector_counts_once():
    run = Run(setup()).ready()
    one = run.open()
    _, masked = run.parties[0].mask(3, np.zeros(5, np.int64), subject=b"")
    one.coordinator.add(0, masked)
    with pytest.raises(ReplayError, match="party 0, mask"):
        one.coordinator.add(0, masked)


def test_vectors_of_those_who_never_shared_stay_out():
    one = Run(setup()).advertise().share({0, 1, 2}).receive().open()
    for stranger in (3, 8):
        with pytest.raises(MembershipError, match=f"party {stranger}; at mask"):
            one.coordinator.add(stranger, np.zeros(5, np.uint64))
    assert one.mask().agree().unmask().tolist() == one.expected()


def test_a_late_vector_stays_out():
    run = Run(setup()).ready()
    one = run.open()
    waiting = one.coordinator
    _, late = run.parties[3].mask(3, np.zeros(5, np.int64), subject=b"")
    one.mask({0, 1, 2})
    with pytest.raises(ReplayError, match="at mask"):
        waiting.add(3, late)
    assert one.agree().unmask().tolist() == one.expected()


def test_a_late_vector_stays_masked_after_its_pair_masks_are_known():
    """What the coordinator knows after unmasking without party 3 leaves party 3's own mask on its late vector."""
    run = Run(setup()).ready()
    _, late = run.parties[3].mask(3, np.zeros(1000, np.int64), subject=b"")
    one = run.open(3, 1000).mask({0, 1, 2}).agree()
    state = one.coordinator._state.get()
    one.unmask()
    revealed = {party: shares.mask_keys for party, shares in one.unmask_shares.items()}
    pair = KeyPair(secagg._recover(state, revealed, {3})[3])
    assert pair.public == run.adverts[3].mask_publics[0]
    for peer in (0, 1, 2):
        key = secagg.mask_key(pair, state.publics[peer], state.asked, 3, peer)
        masks.add_masks(late, [(key.reveal(), 1)])
    only_self_mask = np.zeros(1000, np.uint64)
    seed = Secret(entropy(3)).derive("own self-mask seed", round_context(run.setup.binding, 3), 3, 3)
    masks.add_masks(only_self_mask, [(seed.reveal(), 1)])
    assert np.array_equal(late, only_self_mask)


def test_too_few_vectors_can_still_become_enough():
    run = Run(setup(minimum_survivors=3)).ready()
    masking = run.open().coordinator
    masked = {party: run.parties[party].mask(3, np.zeros(5, np.int64), subject=b"")[1] for party in range(4)}
    for party in (0, 1):
        masking.add(party, masked[party])
    with pytest.raises(DropoutError, match="got 2; at mask"):
        masking.close()
    masking.add(2, masked[2])
    assert masking.close()[1] == {0, 1, 2}


# Step 4


def test_just_enough_signatures_are_handed_on():
    one = Run(setup(5, malicious=True, threshold=3)).ready().open().mask().agree()
    assert sorted(one.signatures) == [0, 1, 2]
    assert one.unmask().tolist() == one.expected()


def test_bad_signatures_are_refused_by_name_and_can_be_left_out():
    one = Run(setup(malicious=True)).ready().open().mask()
    good = {party: one.parties[party].agree(one.survivors)[1] for party in one.survivors}
    for bad, error, message in (
        (good | {2: good[1]}, SignatureError, "party 2, survivors"),
        (good | {2: b""}, SignatureError, "party 2, survivors"),
        (good | {8: good[1]}, MembershipError, "party 8"),
        ({0: good[0], 1: good[1]}, DropoutError, "at least 3; got 2"),
    ):
        with pytest.raises(error, match=message):
            one.coordinator.collect(bad)
    _, signatures = one.coordinator.collect({party: good[party] for party in (0, 1, 3)})
    assert sorted(signatures) == [0, 1, 3]


def test_in_semi_honest_mode_nothing_is_collected():
    one = Run(setup()).ready().open().mask()
    with pytest.raises(SignatureError, match="semi-honest"):
        one.coordinator.collect({1: bytes(64)})
    assert one.coordinator.collect({})[1] == {}


# Step 5


def swapped(shares, one, other):
    """The shares of two parties' seeds handed out under each other's names."""
    seeds = {**shares.self_seeds, one: shares.self_seeds[other], other: shares.self_seeds[one]}
    return UnmaskShares(self_seeds=seeds, mask_keys=shares.mask_keys)


def with_seed(shares, owner, share):
    return UnmaskShares(self_seeds={**shares.self_seeds, owner: share}, mask_keys=shares.mask_keys)


def both_kinds_swapped(shares):
    """What is asked of the dropped given as if it survived."""
    return UnmaskShares(self_seeds={**shares.self_seeds, **shares.mask_keys}, mask_keys={})


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda shares: {**shares, 3: shares[1]}, MembershipError, "party 3; at unmask"),
        (lambda shares: {**shares, 1: both_kinds_swapped(shares[1])}, MembershipError, "party 1, unmask, seeds"),
        (
            lambda shares: {**shares, 1: UnmaskShares(self_seeds=shares[1].self_seeds, mask_keys={})},
            MembershipError,
            "party 1, unmask, mask keys",
        ),
        (lambda shares: {**shares, 1: with_seed(shares[1], 0, bytes(63))}, ShareError, "64 bytes.*party 1, unmask"),
        (lambda shares: {**shares, 1: with_seed(shares[1], 0, b"\xff" * 64)}, ShareError, "below.*party 1, unmask"),
        (lambda shares: {**shares, 1: with_seed(shares[1], 2, bytes(64))}, ShareError, "fit together; at party 2"),
        (lambda shares: {**shares, 1: swapped(shares[1], 0, 2)}, ShareError, "fit together; at party 0"),
        (lambda shares: {**shares, 0: shares[1], 1: shares[0]}, ShareError, "fit together"),
    ],
    ids=[
        "from a dropped party",
        "as if nobody dropped",
        "a mask key missing",
        "truncated",
        "out of range",
        "one wrong share",
        "shares of the wrong party",
        "answers swapped",
    ],
)
def test_bad_answers_are_refused_and_can_be_asked_again(change, error, message):
    one = Run(setup()).ready().open().mask({0, 1, 2}).agree()
    shares = {party: one.parties[party].unmask({}) for party in one.survivors}
    with pytest.raises(error, match=message):
        one.coordinator.combine(change(shares))
    assert one.coordinator.combine({0: shares[0], 2: shares[2]}).tolist() == one.expected()


@pytest.mark.parametrize(
    ("changes", "index"), [({}, 4), ({"attempt": 1}, 3), ({"run": "other"}, 3), ({"threshold": 3}, 3)], ids=str
)
def test_answers_of_another_round_are_refused_even_if_all_replay(changes, index):
    """Nobody dropped, so no recovered mask key could betray the replay."""
    one = Run(setup()).ready().open(3).mask().agree()
    other = Run(setup(**changes)).ready().open(index).mask().agree()
    shares = {party: other.parties[party].unmask({}) for party in other.survivors}
    with pytest.raises(ShareError, match="together"):
        one.coordinator.combine(shares)


def test_mask_keys_must_be_those_that_were_advertised(monkeypatch):
    """A party that shares another key than it advertised, in shares that fit together."""
    run = Run(setup()).advertise()
    with monkeypatch.context() as patch:
        real = secagg.shamir.split_many
        patch.setattr(
            secagg.shamir, "split_many", lambda secrets, *rest, label: real([secrets[0], bytes(32)], *rest, label=label)
        )
        run.sealed[3] = run.parties[3].share(run.adverts)[1]
    one = run.share({0, 1, 2}).receive({0, 1, 2}).open().mask().agree()
    shares = {party: one.parties[party].unmask({}) for party in (0, 1, 2)}
    with pytest.raises(PublicKeyError, match="party 3, unmask"):
        one.coordinator.combine(shares)


def test_too_few_answers_are_counted():
    one = Run(setup(threshold=3)).ready().open().mask().agree()
    with pytest.raises(DropoutError, match="got 2; at party 0, unmask"):
        one.unmask({0, 1})


def test_each_state_works_once():
    run = Run(setup()).advertise()
    sharing = run.coordinator
    run.share()
    ready = run.receive().coordinator
    one = run.open(4)
    masking = one.coordinator
    agreeing = one.mask().coordinator
    unmasking = one.agree().coordinator
    one.unmask()
    for again in (
        lambda: sharing.collect(run.sealed),
        lambda: ready.open(4, 5, subject=b""),
        lambda: ready.open(3, 5, subject=b""),
        masking.close,
        lambda: masking.add(0, one.masked[0]),
        lambda: agreeing.collect({}),
        lambda: unmasking.combine(one.unmask_shares),
    ):
        with pytest.raises(ReplayError, match="twice"):
            again()


def test_rounds_that_were_not_set_up_are_refused():
    with pytest.raises(ProtocolError, match=r"one of \[3, 4, 7\]; got 5"):
        Run(setup()).ready().coordinator.open(5, 5, subject=b"")


def test_after_a_restart_in_mid_round_the_rest_is_set_up_anew():
    """The first coordinator dies with shares of round 4 under way; nothing of the first set-up fits the second."""
    run = Run(setup()).ready()
    assert run.open(3).mask().agree().unmask() is not None
    lost = run.open(4).mask().agree()
    again = Run(setup(attempt=1, rounds=(4, 7)), salt=1).ready()
    one = again.open(4).mask().agree()
    with pytest.raises(ShareError):
        one.coordinator.combine({party: lost.parties[party].unmask({}) for party in range(4)})
    assert one.unmask().tolist() == one.expected()
