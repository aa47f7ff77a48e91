"""Whatever arrives is refused with an error of ours, or is what it should have been: every decoder, fuzzed.

Inputs are the genuine message, the genuine message damaged, or noise: 30 for each of the 12 decoders in the ordinary
run, 5 000 for each (60 000 in all) in the slow one.
"""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from common.errors import CaucusError, InternalError
from common.secagg import shamir
from common.secagg.identity import Roster, verify
from common.secagg.keys import KeyPair, Secret, check_public, open_sealed, seal
from common.secagg.messages import AggregationSetup, KeyAdvert, UnmaskShares
from tests.support.secagg_rounds import Run, identity, roster, setup
from tests.support.shares import combine, split

FEW, MANY = 30, 5_000
ASKED = setup(3, malicious=True, rounds=(0, 1))
EVERYBODY = frozenset(ASKED.parties)
ZEROS = np.zeros(4, np.int64)


def damaged(good):
    """The genuine bytes, changed a little, or noise."""
    places = st.integers(0, len(good) - 1)
    return st.one_of(
        st.just(good),
        st.builds(lambda place, bit: good[:place] + bytes([good[place] ^ 1 << bit]) + good[place + 1 :], places, BITS),
        places.map(lambda place: good[:place]),
        st.binary(min_size=1, max_size=8).map(lambda more: good + more),
        st.binary(max_size=len(good) + 8),
        st.binary(min_size=len(good), max_size=len(good)),
        st.sampled_from([bytes(len(good)), b"\xff" * len(good), b""]),
    )


BITS = st.integers(0, 7)
PARTIES = st.integers(-1, 4)


def by_party(good):
    """The genuine mapping with entries damaged, left out, swapped or added."""
    mixed = st.one_of(*(damaged(text) for text in good.values()))
    return st.one_of(
        st.just(good),
        st.fixed_dictionaries({party: damaged(text) for party, text in good.items()}),
        st.dictionaries(PARTIES, mixed, max_size=4),
        st.permutations(sorted(good.values())).map(lambda texts: dict(zip(good, texts, strict=True))),
    )


def refused(call):
    """None if the call is refused as it should be; its result otherwise. A bug of ours is no refusal."""
    try:
        return call()
    except InternalError:
        raise
    except CaucusError:
        return None


@functools.cache
def stage(step):
    """A run of three parties at this step, for states that a refusal leaves alone."""
    run = Run(ASKED)
    if step == "advertised":
        return run.advertise()
    if step == "shared":
        return run.advertise().share()
    one = run.ready().open(0, 4)
    if step == "mask":
        return one
    one.mask()
    if step == "agree":
        return one
    one.agree()
    return one


def fuzz_roster_file(data):
    good = roster(range(2)).to_json().encode()
    text = data.draw(
        st.one_of(damaged(good), st.text(max_size=20), st.from_regex(r'\{("\d{1,2}": "[0-9a-f]{64}",? ?)*\}'))
    )
    held = refused(lambda: Roster.from_json(text))
    assert held is None or Roster.from_json(held.to_json()) == held


def fuzz_signature(data):
    party, statement = data.draw(st.integers(0, 2)), data.draw(damaged(b"statement"))
    good = identity(1).sign(b"statement")
    signature = data.draw(damaged(good))
    accepted = refused(lambda: verify(roster(range(3)), party, statement, signature, where="test") or True)
    assert bool(accepted) == ((party, statement, signature) == (1, b"statement", good))


def fuzz_public_key(data):
    public = data.draw(st.one_of(damaged(identity(1).public), st.none(), st.text(max_size=32)))
    advert = refused(lambda: KeyAdvert(seal_public=public, mask_publics=()))
    if advert and refused(lambda: check_public(public, where="test") or True):
        KeyPair(Secret(b"x" * 32)).agree(public, where="test")


def fuzz_set_up(data):
    numbers = st.integers(-2, 2**64) | st.integers(-1, 5)
    fields = {
        "run": st.text(max_size=3),
        "attempt": numbers,
        "rounds": st.lists(numbers, max_size=3).map(tuple),
        "parties": st.lists(numbers, max_size=5, unique=True).map(sorted).map(tuple),
        "threshold": numbers,
        "minimum_survivors": numbers,
        "degree": numbers,
        "corrupt": numbers,
        "plan_digest": st.binary(max_size=2) | st.just(bytes(32)),
        "roster_digest": st.binary(max_size=2) | st.just(bytes(32)),
    }
    good = {"run": "r", "attempt": 0, "rounds": (0,), "parties": (0, 1, 2), "degree": 2, "threshold": 2}
    good |= {"minimum_survivors": 2, "corrupt": 0, "plan_digest": bytes(32), "roster_digest": b""}
    changed = data.draw(st.sets(st.sampled_from(sorted(fields)), max_size=3))
    aggregation = refused(lambda: AggregationSetup(**good | {name: data.draw(fields[name]) for name in changed}))
    if aggregation:
        assert aggregation.corrupt < aggregation.threshold or aggregation.degree < len(aggregation.parties) - 1
        assert aggregation.signers <= aggregation.quorum <= len(aggregation.parties)


def fuzz_sealed(data):
    agreed = KeyPair(Secret(b"a" * 32)).agree(KeyPair(Secret(b"b" * 32)).public, where="test")
    good = seal(agreed, b"t" * 32, 0, 1, b"two shares")
    place = data.draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
    sealed = data.draw(damaged(good))
    plain = refused(lambda: open_sealed(agreed, b"t" * 32, *place, sealed))
    assert (plain == b"two shares") == (place == (0, 1) and sealed == good)
    assert plain in (None, b"two shares")


def fuzz_shares(data):
    good = split(b"s" * 32, 2, [1, 2, 3], b"e" * 32, label=b"label")
    points = st.one_of(st.integers(1, 3), st.integers(-1, 2**32), st.just(shamir.PRIME))
    shares = data.draw(by_party(good) | st.dictionaries(points, damaged(good[1]), max_size=4))
    secret = refused(lambda: combine(shares, 2, label=b"label"))
    assert secret in (None, b"s" * 32)


def fuzz_keys_at_a_party(data):
    run = stage("advertised")
    good = run.adverts
    texts = data.draw(by_party({party: b"".join(advert.keys) + advert.signature for party, advert in good.items()}))
    adverts = refused(lambda: {party: _advert(text) for party, text in texts.items()})
    state, _ = run.begin(0)
    shared = adverts and refused(lambda: state.share(adverts))
    assert not shared or all(adverts[party] == good[party] for party in adverts)


def fuzz_inbox(data):
    run = stage("shared")
    state, _ = run.begin(0)[0].share(run.adverts)
    inbox, sharers = data.draw(by_party(run.inboxes[0])), data.draw(st.frozensets(PARTIES) | st.just(EVERYBODY))
    accepted = refused(lambda: state.receive(inbox, sharers))
    assert bool(accepted) == (inbox == run.inboxes[0] and sharers == EVERYBODY)


def fuzz_survivors_and_signatures(data):
    run = stage("shared")
    ready = run.begin(0)[0].share(run.adverts)[0].receive(run.inboxes[0], EVERYBODY)
    survivors = data.draw(st.frozensets(PARTIES) | st.just(EVERYBODY))
    agreed = refused(lambda: ready.mask(0, ZEROS, subject=b"")[0].agree(survivors))
    good = stage("unmask").signatures
    signatures = data.draw(by_party(good))
    shares = agreed and refused(lambda: agreed[0].unmask(signatures))
    if shares:
        assert survivors == EVERYBODY
        assert signatures.items() <= good.items()
        assert not set(shares.self_seeds) & set(shares.mask_keys)


def fuzz_shares_at_the_coordinator(data):
    run = stage("advertised")
    sealed = {party: run.begin(party)[0].share(run.adverts)[1] for party in range(3)}
    changed = data.draw(st.dictionaries(PARTIES, by_party(sealed[1]), max_size=2))
    collected = refused(lambda: Run(ASKED).advertise().coordinator.collect(sealed | changed))
    assert not collected or all(set(texts) == EVERYBODY - {party} for party, texts in changed.items())


def fuzz_masked_vector(data):
    masking = stage("mask").coordinator
    before = masking._state.get().words.copy()
    shapes = arrays.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=5)
    vectors = st.sampled_from([np.uint8, np.int64, np.float64, ">u8", "U1"]).flatmap(
        lambda kind: arrays.arrays(kind, shapes)
    )
    vector = data.draw(vectors | st.none() | st.binary() | st.lists(st.integers()))
    assert refused(lambda: masking.add(data.draw(PARTIES), vector) or True) is None
    assert np.array_equal(masking._state.get().words, before)


def fuzz_unmasking(data):
    one = Run(ASKED).ready().open(0, 4).mask({0, 1, 2}).agree()
    good = {party: one.parties[party].unmask(one.signatures) for party in range(3)}
    seeds = data.draw(st.dictionaries(PARTIES, by_party(dict(good[1].self_seeds)), max_size=2))
    keys = data.draw(st.dictionaries(PARTIES, damaged(bytes(64)), max_size=1))
    answers = refused(lambda: good | {party: UnmaskShares(self_seeds=seeds[party], mask_keys=keys) for party in seeds})
    total = answers and refused(lambda: one.coordinator.combine(answers))
    assert total is None or total.tolist() == one.expected()


DECODERS = [decoder for name, decoder in list(globals().items()) if name.startswith("fuzz_")]


def _advert(text):
    keys = [text[start : start + 32] for start in range(0, 96, 32)]
    return KeyAdvert(seal_public=keys[0], mask_publics=tuple(keys[1:]), signature=text[96:])


@pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: decoder.__name__)
def test_decoders(decoder):
    settings(max_examples=FEW, deadline=None)(given(st.data())(decoder))()


@pytest.mark.slow
@pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: decoder.__name__)
def test_decoders_at_length(decoder):
    settings(max_examples=MANY, deadline=None)(given(st.data())(decoder))()
