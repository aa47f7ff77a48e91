import copy
import gc
import pickle
from dataclasses import replace
from types import FunctionType, ModuleType

import numpy as np
import pytest
from scipy import stats

from client import secagg
from common.errors import (
    DropoutError,
    InternalError,
    MembershipError,
    PlanError,
    ProtocolError,
    PublicKeyError,
    ReplayError,
    SealError,
    ShareError,
    SignatureError,
)
from common.secagg import shamir
from common.secagg.keys import KeyPair, Secret, mask_key
from common.secagg.masks import add_masks
from common.secagg.rules import about, check_adverts, round_context, survivors_statement
from tests.support.secagg_rounds import LENGTH, Run, entropy, identity, roster, setup, vectors

ZEROS = np.zeros(LENGTH, dtype=np.int64)
SPARSE = {"count": 12, "degree": 6, "threshold": 4}


# Step 1


def test_keys_are_reproducible_and_all_distinct():
    run = Run(setup(malicious=True))
    one, same = (run.begin(1)[1] for _ in range(2))
    assert one == same
    assert len(set(one.keys)) == 4


def test_reused_entropy_still_gives_fresh_keys_in_each_set_up_and_party():
    adverts = [
        secagg.begin(setup(**changes), party, entropy(1), identity=None, roster=None)[1]
        for changes, party in [({}, 1), ({}, 2), ({"rounds": (8, 9, 10)}, 1), ({"attempt": 1}, 1), ({"run": "x"}, 1)]
    ]
    assert len({key for advert in adverts for key in advert.keys}) == 20


def test_a_party_outside_the_set_up_cannot_take_part():
    with pytest.raises(MembershipError, match="party 9;"):
        secagg.begin(setup(), 9, entropy(9), identity=None, roster=None)


def test_a_party_that_the_roster_does_not_name_cannot_take_part():
    identities = roster((0, 1, 2))
    with pytest.raises(MembershipError, match="party 3"):
        secagg.begin(setup(roster_digest=identities.digest), 0, entropy(0), identity=identity(0), roster=identities)


@pytest.mark.parametrize(
    ("aggregation", "me", "identities"),
    [
        (setup(malicious=True), None, None),
        (setup(malicious=True), None, roster(range(4))),
        (setup(malicious=True), identity(0), None),
        (setup(malicious=True), identity(1), roster(range(4))),
        (setup(malicious=True), identity(0), roster(range(5))),
        (setup(), identity(0), None),
        (setup(), identity(0), roster(range(4))),
    ],
    ids=["nothing", "no identity", "no roster", "another's", "another roster", "needless identity", "needless both"],
)
def test_identity_and_roster_must_be_those_of_the_set_up(aggregation, me, identities):
    with pytest.raises(MembershipError):
        secagg.begin(aggregation, 0, entropy(0), identity=me, roster=identities)


def test_short_entropy_is_refused():
    with pytest.raises(InternalError, match="16 bytes"):
        secagg.begin(setup(), 0, bytes(16), identity=None, roster=None)


# Step 2, sending


def test_each_neighbour_gets_one_ciphertext():
    for aggregation in (setup(), setup(**SPARSE)):
        run = Run(aggregation).advertise().share()
        graph = check_adverts(aggregation, run.adverts, None, "test")[1]
        assert {party: set(sealed) for party, sealed in run.sealed.items()} == graph
        texts = [text for sealed in run.sealed.values() for text in sealed.values()]
        assert len(set(texts)) == len(aggregation.parties) * aggregation.degree
        assert {len(text) for text in texts} == {3 * 128 + 16}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda keys: keys | {7: keys[1]}, MembershipError, "party 7"),
        (lambda keys: {peer: keys[peer] for peer in (1, 2, 3)}, PublicKeyError, "this party's own"),
        (lambda keys: keys | {0: keys[1]}, PublicKeyError, "this party's own"),
        (lambda keys: keys | {2: keys[1]}, PublicKeyError, "repeated one; at party 2"),
        (
            lambda keys: keys | {2: replace(keys[2], seal_public=keys[1].mask_publics[2])},
            PublicKeyError,
            "repeated one; at party 2",
        ),
        (lambda keys: keys | {2: replace(keys[2], mask_publics=keys[2].mask_publics[:2])}, PublicKeyError, "3 for"),
        (lambda keys: {0: keys[0], 1: keys[1]}, DropoutError, "at least 3; got 2; at share"),
        (lambda keys: keys | {2: replace(keys[2], seal_public=bytes(32))}, PublicKeyError, "party 2"),
        (
            lambda keys: keys | {2: replace(keys[2], mask_publics=(*keys[2].mask_publics[:2], bytes(32)))},
            PublicKeyError,
            "party 2",
        ),
    ],
    ids=[
        "stranger",
        "without me",
        "my keys replaced",
        "copied keys",
        "one copied key",
        "a round without key",
        "too few",
        "low order to seal",
        "low order to mask",
    ],
)
def test_bad_keys_are_refused(change, error, message):
    run = Run(setup(threshold=3)).advertise()
    with pytest.raises(error, match=message):
        run.parties[0].share(change(run.adverts))


def test_keys_that_the_coordinator_put_in_place_of_a_party_s_are_refused():
    run = Run(setup(malicious=True)).advertise()
    advert = Run(setup(malicious=True), salt=1).begin(1)[1]
    with pytest.raises(SignatureError, match="party 1"):
        run.parties[0].share(run.adverts | {1: replace(advert, signature=run.adverts[1].signature)})


# Step 2, receiving


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda inbox: inbox | {1: inbox[1][:-1] + bytes([inbox[1][-1] ^ 1])}, SealError, "authenticate; at party 1"),
        (lambda inbox: inbox | {1: inbox[1][:40]}, SealError, "expected 400 bytes.*party 1"),
        (lambda inbox: inbox | {1: b""}, SealError, "expected 400 bytes.*party 1"),
        (lambda inbox: inbox | {1: inbox[2], 2: inbox[1]}, SealError, "authenticate; at party 1"),
        (lambda inbox: inbox | {9: inbox[1]}, MembershipError, "got party 1, party 2, party 3, party 9"),
        (lambda inbox: inbox | {0: inbox[1]}, MembershipError, "got party 0, party 1, party 2, party 3"),
        (
            lambda inbox: {1: inbox[1], 2: inbox[2]},
            MembershipError,
            "expected party 1, party 2, party 3; got party 1, party 2",
        ),
    ],
    ids=["tampered", "truncated", "empty", "swapped senders", "stranger", "from itself", "one kept back"],
)
def test_bad_inboxes_are_refused(change, error, message):
    run = Run(setup()).advertise().share()
    with pytest.raises(error, match=message):
        run.parties[0].receive(change(run.inboxes[0]), frozenset(range(4)))


def test_shares_meant_for_another_party_are_refused():
    run = Run(setup()).advertise().share()
    with pytest.raises(SealError, match="party 1"):
        run.parties[0].receive(run.inboxes[0] | {1: run.inboxes[2][1]}, frozenset(range(4)))


@pytest.mark.parametrize(
    "changes", [{"rounds": (3, 4, 8)}, {"attempt": 1}, {"run": "other"}, {"threshold": 3}, {"corrupt": 1}], ids=str
)
def test_shares_of_another_set_up_are_refused_even_under_the_same_entropy(changes):
    run, other = (Run(aggregation).advertise().share() for aggregation in (setup(), setup(**changes)))
    with pytest.raises(SealError, match="authenticate"):
        run.parties[0].receive(run.inboxes[0] | {1: other.inboxes[0][1]}, frozenset(range(4)))


def test_parties_that_saw_different_keys_cannot_open_each_other_s_shares():
    """A coordinator that shows party 0 three parties and party 1 four of them."""
    run = Run(setup()).advertise()
    few = {party: run.adverts[party] for party in (0, 1, 2)}
    state, _ = run.parties[0].share(few)
    sealed = {1: run.parties[1].share(run.adverts)[1][0], 2: run.parties[2].share(few)[1][0]}
    with pytest.raises(SealError, match="at party 1"):
        state.receive(sealed, frozenset({0, 1, 2}))


@pytest.mark.parametrize(
    ("sharers", "error", "message"),
    [
        ({0, 1, 2, 3, 9}, MembershipError, "party 9; at receive"),
        ({1, 2, 3}, MembershipError, "party 0; at receive"),
        ({0, 1}, DropoutError, "at least 3; got 2; at receive"),
    ],
    ids=["stranger", "without me", "too few"],
)
@pytest.mark.parametrize("limits", [{"threshold": 3}, {"minimum_survivors": 3}, {"malicious": True}], ids=str)
def test_bad_lists_of_sharers_are_refused(sharers, error, message, limits):
    run = Run(setup(**limits)).advertise().share()
    inbox = {sender: run.inboxes[0][sender] for sender in sharers & {1, 2, 3}}
    with pytest.raises(error, match=message):
        run.parties[0].receive(inbox, frozenset(sharers))


def test_too_few_sharing_neighbours_are_refused():
    run = Run(setup(**SPARSE)).advertise().share()
    sharers = frozenset(range(12)) - set(sorted(run.inboxes[0])[:4])
    inbox = {sender: sealed for sender, sealed in run.inboxes[0].items() if sender in sharers}
    with pytest.raises(DropoutError, match="got 3"):
        run.parties[0].receive(inbox, sharers)


def test_well_sealed_nonsense_is_refused(monkeypatch):
    run = Run(setup()).advertise()
    with monkeypatch.context() as patch:
        real = shamir.split_many
        patch.setattr(
            shamir,
            "split_many",
            lambda *arguments, label: [dict.fromkeys(points, b"\xff" * 64) for points in real(*arguments, label=label)],
        )
        _, sealed = run.parties[1].share(run.adverts)
    run.share({0, 2, 3})
    with pytest.raises(ShareError, match=r"share;.*party 1"):
        run.parties[0].receive(run.inboxes[0] | {1: sealed[0]}, frozenset(range(4)))


# Step 3


@pytest.mark.parametrize(
    "aggregation", [setup(3), setup(3, malicious=True), setup(**SPARSE)], ids=["full", "signed", "sparse"]
)
def test_masked_vector_is_input_plus_self_mask_plus_signed_pair_masks(aggregation):
    """The formula of step 3, computed from all private keys."""
    run = Run(aggregation).ready()
    masked = run.open(4).mask().masked
    transcript, graph = check_adverts(aggregation, run.adverts, run.roster, "test")
    own_binding, shared = round_context(aggregation.binding, 4), about(round_context(transcript, 4), b"")
    roots = {party: Secret(entropy(party)) for party in aggregation.parties}
    pairs = {party: KeyPair(root.derive("own mask key", own_binding, party, party)) for party, root in roots.items()}
    for party in aggregation.parties:
        assert pairs[party].public == run.adverts[party].mask_publics[1]
        expected = vectors(aggregation, 4)[party].view(np.uint64).copy()
        add_masks(expected, [(roots[party].derive("own self-mask seed", own_binding, party, party).reveal(), 1)])
        for peer in graph[party]:
            key = mask_key(pairs[peer], pairs[party].public, shared, peer, party)
            add_masks(expected, [(key.reveal(), 1 if party < peer else -1)])
        assert np.array_equal(masked[party], expected)


def test_masked_vectors_look_uniform():
    """Chi-square over the 256 values of each of 8 byte positions of three parties' masked zeros and of their sums.

    Entropy is fixed, so this cannot flicker; over random entropy the false-alarm rate is 1e-6 (Bonferroni over 40).
    """
    run = Run(setup(3)).ready()
    masked = [run.parties[party].mask(3, np.zeros(20_000, np.int64), subject=b"")[1] for party in range(3)]
    for vector in (*masked, masked[0] + masked[1], sum(masked)):
        for position in vector.view(np.uint8).reshape(-1, 8).T:
            assert stats.chisquare(np.bincount(position, minlength=256)).pvalue > 1e-6 / 40


@pytest.mark.parametrize("changes", [{"attempt": 1}, {"run": "other"}, {"rounds": (3, 4)}], ids=str)
def test_no_mask_is_used_twice_in_any_round_even_with_the_same_entropy(changes):
    """Masked zeros are the masks. Equal words or a constant difference would betray reuse."""
    masks = [
        run.parties[party].mask(index, np.zeros(1000, np.int64), subject=b"")[1]
        for run in (Run(setup()).ready(), Run(setup(**changes)).ready())
        for party in range(4)
        for index in (3, 4)
    ]
    words = np.concatenate(masks)
    assert np.unique(words).size == words.size
    for one in range(16):
        for other in range(one):
            assert np.unique(masks[one] - masks[other]).size == 1000
            assert np.unique(masks[one] + masks[other]).size == 1000


@pytest.mark.parametrize(
    "vector",
    [
        np.zeros(0, np.int64),
        np.zeros((5, 1), np.int64),
        np.zeros(5),
        [0, 0, 0, 0, 0],
        np.full(5, (2**63 - 1) // 4 + 1),
        np.full(5, -(2**63)),
    ],
    ids=["empty", "two axes", "float", "list", "could wrap", "smallest"],
)
def test_vectors_that_do_not_fit_are_refused_and_the_round_is_over(vector):
    ready = Run(setup()).ready().parties[0]
    with pytest.raises(PlanError):
        ready.mask(3, vector, subject=b"")
    with pytest.raises(ReplayError):
        ready.mask(3, ZEROS, subject=b"")
    ready.mask(4, ZEROS, subject=b"")


def test_rounds_that_were_not_set_up_are_refused():
    with pytest.raises(ProtocolError, match=r"\[3, 4, 7\]; got 5"):
        Run(setup()).ready().parties[0].mask(5, ZEROS, subject=b"")


def test_the_input_is_left_alone():
    vector = ZEROS.copy()
    Run(setup()).ready().parties[0].mask(3, vector, subject=b"")
    assert not vector.any()


# Step 4


@pytest.mark.parametrize(
    ("survivors", "error", "message"),
    [
        ({0, 1}, DropoutError, "at least 3; got 2; at agree"),
        (set(), MembershipError, "party 0; at agree"),
        ({1, 2, 3}, MembershipError, "party 0; at agree"),
        ({0, 1, 2, 4}, MembershipError, "party 4"),
        ({0, 1, 2, 9}, MembershipError, "party 9"),
    ],
    ids=["too few", "nobody", "without me", "one that never shared", "stranger"],
)
@pytest.mark.parametrize(
    "limits", [{"threshold": 3}, {"minimum_survivors": 3}, {"threshold": 3, "malicious": True}], ids=str
)
def test_bad_survivor_sets_are_refused(survivors, error, message, limits):
    run = Run(setup(5, **limits)).advertise().share({0, 1, 2, 3}).receive()
    masked, _ = run.parties[0].mask(3, ZEROS, subject=b"")
    with pytest.raises(error, match=message):
        masked.agree(frozenset(survivors))


def test_in_semi_honest_mode_nothing_is_signed():
    masked, _ = Run(setup()).ready().parties[0].mask(3, ZEROS, subject=b"")
    assert masked.agree(frozenset(range(4)))[1] == b""


def test_a_signature_is_over_round_sharers_and_survivors():
    run = Run(setup(malicious=True)).ready()
    masked, _ = run.parties[0].mask(4, ZEROS, subject=b"")
    _, signature = masked.agree(frozenset({0, 1, 2}))
    transcript, _ = check_adverts(run.setup, run.adverts, run.roster, "test")
    statement = survivors_statement(about(round_context(transcript, 4), b""), range(4), {0, 1, 2})
    assert signature == identity(0).sign(statement)


# Step 5


def test_one_share_for_oneself_and_each_neighbour_and_never_both():
    run = Run(setup(5)).advertise({0, 1, 2, 3}).share().receive()
    one = run.open().mask({0, 1, 2}).agree()
    for party in range(3):
        shares = one.parties[party].unmask({})
        assert (set(shares.self_seeds), set(shares.mask_keys)) == ({0, 1, 2}, {3})


def test_in_a_sparse_graph_only_neighbours_shares_are_held():
    run = Run(setup(**SPARSE)).ready()
    one = run.open().mask(set(range(11))).agree()
    graph = check_adverts(run.setup, run.adverts, None, "test")[1]
    for party in range(11):
        shares = one.parties[party].unmask({})
        assert set(shares.self_seeds) == (graph[party] | {party}) - {11}
        assert set(shares.mask_keys) == graph[party] & {11}


def signed(run, index=3, survivors=frozenset(range(4))):
    """Party to the state after it agreed to these survivors, and to its signature."""
    agreed = {
        party: run.parties[party].mask(index, ZEROS, subject=b"")[0].agree(survivors) for party in sorted(survivors)
    }
    return {party: pair[0] for party, pair in agreed.items()}, {party: pair[1] for party, pair in agreed.items()}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda good: {}, DropoutError, "at least 3; got 0"),
        (lambda good: {0: good[0], 1: good[1]}, DropoutError, "at least 3; got 2"),
        (lambda good: good | {1: good[2]}, SignatureError, "at party 1"),
        (lambda good: good | {2: bytes(64)}, SignatureError, "at party 2"),
        (lambda good: good | {2: good[2][:63]}, SignatureError, "at party 2"),
        (lambda good: good | {2: b""}, SignatureError, "at party 2"),
        (lambda good: good | {7: good[2]}, MembershipError, "party 7"),
    ],
    ids=["none", "too few", "copied", "zeros", "truncated", "empty", "stranger"],
)
def test_nothing_is_handed_out_without_enough_good_signatures(change, error, message):
    states, signatures = signed(Run(setup(malicious=True)).ready())
    with pytest.raises(error, match=message):
        states[0].unmask(change(signatures))
    with pytest.raises(ReplayError):
        states[0].unmask(signatures)


@pytest.mark.parametrize(
    "other",
    [
        lambda: signed(Run(setup(malicious=True)).ready(), index=4)[1],
        lambda: signed(Run(setup(malicious=True), salt=1).ready())[1],
        lambda: signed(Run(setup(malicious=True, attempt=1)).ready())[1],
        lambda: signed(Run(setup(malicious=True)).ready(), survivors=frozenset({0, 1, 2}))[1],
        lambda: signed(
            Run(setup(malicious=True)).advertise().share({0, 1, 2}).receive(), survivors=frozenset(range(3))
        )[1],
    ],
    ids=["another round", "other keys", "another attempt", "other survivors", "other sharers"],
)
def test_signatures_over_anything_else_are_refused(other):
    states, _ = signed(Run(setup(malicious=True)).ready())
    with pytest.raises(SignatureError):
        states[0].unmask(other())


def test_a_split_view_of_the_survivors_unmasks_nobody():
    """A coordinator tells 0 and 1 that 3 dropped, and 2 and 3 that all survived: neither set finds 3 signatures."""
    run = Run(setup(malicious=True)).ready()
    masked = {party: run.parties[party].mask(3, ZEROS, subject=b"")[0] for party in range(4)}
    views = {0: {0, 1, 2}, 1: {0, 1, 2}, 2: {0, 1, 2, 3}, 3: {0, 1, 2, 3}}
    states, signatures = {}, {}
    for party, view in views.items():
        states[party], signatures[party] = masked[party].agree(frozenset(view))
    for state, signers in ((states[0], (0, 1)), (states[2], (2, 3))):
        with pytest.raises(DropoutError, match="got 2"):
            state.unmask({signer: signatures[signer] for signer in signers})


# One use each


def test_each_state_works_once_whatever_it_is_asked_the_second_time():
    run = Run(setup()).advertise()
    advertised = run.parties[0]
    run.share()
    shared = run.parties[0]
    run.receive()
    ready = run.parties[0]
    one = run.open(4).mask()
    masked = one.parties[0]
    one.agree()
    agreed = one.parties[0]
    one.unmask()
    for again in (
        lambda: advertised.share(run.adverts),
        lambda: shared.receive(run.inboxes[0], frozenset(range(4))),
        lambda: ready.mask(4, ZEROS, subject=b""),
        lambda: ready.mask(3, ZEROS, subject=b""),
        lambda: masked.agree(frozenset({0, 1, 2})),
        lambda: masked.agree(one.survivors),
        lambda: agreed.unmask({}),
    ):
        with pytest.raises(ReplayError, match="twice"):
            again()
    ready.mask(7, ZEROS, subject=b"")


def test_a_refused_agreement_is_not_tried_again():
    masked, _ = Run(setup()).ready().parties[0].mask(3, ZEROS, subject=b"")
    with pytest.raises(MembershipError):
        masked.agree(frozenset({1, 2, 3}))
    with pytest.raises(ReplayError):
        masked.agree(frozenset(range(4)))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickle.dumps])
def test_states_cannot_be_copied(duplicate):
    run = Run(setup()).advertise()
    states = [run.parties[0], run.share().parties[0], run.receive().parties[0]]
    one = run.open().mask()
    states += [one.parties[0], one.agree().parties[0]]
    for state in states:
        with pytest.raises(TypeError, match="copied"):
            duplicate(state)


def test_a_shallow_copy_is_spent_with_its_original():
    ready = Run(setup()).ready().parties[0]
    twin = copy.copy(ready)
    ready.mask(3, ZEROS, subject=b"")
    with pytest.raises(ReplayError):
        twin.mask(3, ZEROS, subject=b"")


def reachable(state):
    """All that a state holds, at any depth."""
    seen, new = {}, [state]
    while new:
        seen |= {id(item): item for item in new}
        skipped = (type, ModuleType, FunctionType)
        new = [item for item in gc.get_referents(*new) if id(item) not in seen and not isinstance(item, skipped)]
    return list(seen.values())


def own_secrets(aggregation, party, index):
    """A party's seed and private mask key of one round."""
    binding = round_context(aggregation.binding, index)
    root = Secret(entropy(party))
    return {root.derive(purpose, binding, party, party).reveal() for purpose in ("own self-mask seed", "own mask key")}


def test_secrets_go_as_soon_as_they_are_not_needed():
    run = Run(setup()).advertise()
    aggregation, spent = run.setup, [run.parties[0]]
    sealing = Secret(entropy(0)).derive("own seal key", aggregation.binding, 0, 0)
    agreed = KeyPair(sealing).agree(run.adverts[1].seal_public, where="test")
    assert sealing.reveal() in reachable(run.parties[0])

    spent.append(run.share().parties[0])
    secrets = reachable(run.parties[0])
    assert agreed.reveal() in secrets
    assert sealing.reveal() not in secrets

    ready = run.receive().parties[0]
    secrets = reachable(ready)
    assert agreed.reveal() not in secrets
    assert all(secret in secrets for index in aggregation.rounds for secret in own_secrets(aggregation, 0, index))

    masked, _ = ready.mask(4, ZEROS, subject=b"")
    assert not any(
        secret in reachable(masked) for index in aggregation.rounds for secret in own_secrets(aggregation, 0, index)
    )
    secrets = reachable(ready)
    assert not any(secret in secrets for index in (3, 4) for secret in own_secrets(aggregation, 0, index))
    assert all(secret in secrets for secret in own_secrets(aggregation, 0, 7))

    state, _ = masked.agree(frozenset(range(4)))
    share = state.unmask({}).self_seeds[1]
    for state_ in (*spent, masked, state):
        left = [item for item in reachable(state_) if isinstance(item, bytes)]
        assert not any(share in item or entropy(0) in item for item in left)


def test_nothing_shows_a_secret():
    run = Run(setup(malicious=True)).advertise()
    secrets = {secret for index in run.setup.rounds for secret in own_secrets(run.setup, 0, index)}
    for step in (Run.share, Run.receive, Run.open):
        ours = [item for item in reachable(run.parties[0]) if type(item).__module__.startswith(("client.", "common."))]
        assert any(isinstance(item, Secret) for item in ours)
        text = "".join(repr(item) + str(item) for item in ours)
        assert not any(secret.hex() in text or repr(secret)[2:-1] in text for secret in secrets)
        step(run)


def test_parties_that_were_asked_different_things_have_masks_that_do_not_cancel():
    run = Run(setup(2)).ready()
    words = [run.parties[party].mask(3, ZEROS, subject=bytes([party]))[1] for party in range(2)]
    same = Run(setup(2)).ready()
    alike = [same.parties[party].mask(3, ZEROS, subject=b"x")[1] for party in range(2)]
    assert not np.array_equal(words[0] + words[1], alike[0] + alike[1])
