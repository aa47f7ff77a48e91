"""Every message survives the wire, and nothing else is taken for one."""

import hashlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common import messages as m
from common import wire
from common.errors import ProtocolError
from common.queries.closed_set import digest, inputs
from common.queries.votes import Votes, VotesSpec
from common.secagg.messages import KeyAdvert, UnmaskShares
from protos import party_pb2, query_pb2
from simulations.federation.parties import LastValues
from tests.support.federations import each_kind

PARTIES = st.integers(0, 1000)
BY_PARTY = st.dictionaries(PARTIES, st.binary(max_size=40), max_size=4)
KEYS = st.binary(min_size=32, max_size=32)
ADVERTS = st.builds(
    KeyAdvert,
    seal_public=KEYS,
    mask_publics=st.lists(KEYS, max_size=3).map(tuple),
    signature=st.sampled_from([b"", bytes(64)]),
)
DELIVERIES = st.builds(m.Delivery, BY_PARTY, st.frozensets(PARTIES, max_size=4))


@st.composite
def votes(draw):
    candidates, dimensions = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    vectors = rng.normal(size=(candidates, dimensions)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    spec = VotesSpec(top=draw(st.integers(1, 20)), furthest=draw(st.booleans()), max_records=draw(st.integers(1, 9)))
    return Votes(spec=spec, vectors=vectors, labels=rng.integers(0, 5, candidates).astype(np.int32))


BODIES = st.one_of(
    st.builds(m.Open, st.binary(max_size=50), st.integers(0, 2**31)),
    st.builds(m.Opened, st.text(max_size=20), st.none() | ADVERTS, st.sampled_from(["", "0.2.0", "1.0.0rc1+local"])),
    st.builds(m.AskShares, st.dictionaries(PARTIES, ADVERTS, max_size=3)),
    st.builds(m.Shares, BY_PARTY),
    st.builds(m.Ask, votes() | st.sampled_from([*each_kind().values()]), st.none() | DELIVERIES),
    st.builds(m.AskAgree, st.frozensets(PARTIES, max_size=5)),
    st.builds(m.Agreement, st.binary(max_size=64)),
    st.builds(
        m.Answer, st.lists(st.integers(0, 2**64 - 1), max_size=9).map(lambda words: np.array(words, dtype=np.uint64))
    ),
    st.builds(m.AskUnmask, st.frozensets(PARTIES, max_size=5), BY_PARTY),
    st.tuples(BY_PARTY, BY_PARTY).map(
        lambda both: UnmaskShares(
            self_seeds=both[0], mask_keys={party: share for party, share in both[1].items() if party not in both[0]}
        )
    ),
    st.builds(m.Close),
    st.builds(m.Closed),
    st.builds(m.Release, st.binary(max_size=60)),
    st.builds(m.Received),
    st.builds(m.Refusal, st.sampled_from(m.Reason)),
)
ENVELOPES = st.builds(
    m.Envelope,
    run=st.text(max_size=10),
    party=PARTIES,
    plan_digest=KEYS,
    index=st.integers(0, 2**31),
    attempt=st.integers(0, 2**31),
    body=BODIES,
)


def same(a, b):
    """Equality that looks into arrays."""
    if type(a) is not type(b):
        return False
    if isinstance(a, m.Ask):
        return digest(a.query) == digest(b.query) and a.query.spec == b.query.spec and a.delivery == b.delivery
    if isinstance(a, m.Answer):
        return np.array_equal(a.words, b.words)
    return a == b


@given(ENVELOPES)
def test_a_message_survives_the_wire(envelope):
    back = wire.unpack(wire.pack(envelope))
    assert same(back.body, envelope.body)
    for name in ("run", "party", "plan_digest", "index", "attempt"):
        assert getattr(back, name) == getattr(envelope, name)


@pytest.mark.parametrize("query", each_kind().values(), ids=each_kind())
def test_a_query_of_each_kind_arrives_with_its_arrays(query):
    parcel = wire.pack(m.Envelope(run="r", party=0, plan_digest=bytes(32), body=m.Ask(query)))
    back = wire.unpack(parcel).body.query
    assert type(back) is type(query)
    assert back.spec == query.spec
    assert {name: (array.dtype, array.tolist()) for name, array in inputs(back).items()} == {
        name: (array.dtype, array.tolist()) for name, array in inputs(query).items()
    }


@pytest.mark.parametrize(
    "spoil",
    [
        lambda ask: setattr(ask, "spec", b"{"),
        lambda ask: setattr(ask, "spec", b"[]"),
        lambda ask: setattr(ask, "spec", b"[" * 100_000),
        lambda ask: setattr(ask, "spec", b'{"kind": "anything"}'),
        lambda ask: setattr(ask, "spec", b'{"kind": ["votes"]}'),
        lambda ask: setattr(ask, "spec", ask.spec.replace(b"}", b', "more": 1}')),
        lambda ask: ask.arrays.append(query_pb2.Array(name="vectors", shape=[6, 32])),
        lambda ask: ask.arrays.append(query_pb2.Array(name="edges", shape=[0])),
        lambda ask: ask.arrays.append(query_pb2.Array(name="anything", shape=[0])),
        lambda ask: setattr(ask.arrays[0], "name", "weights"),
        lambda ask: ask.arrays[0].shape.append(1),
        lambda ask: ask.arrays[0].shape.append(2**31),
        lambda ask: ask.arrays[0].shape.pop(),
        lambda ask: ask.arrays.pop(),
    ],
)
def test_a_query_whose_parts_disagree_is_refused(spoil):
    parcel = wire.pack(m.Envelope(run="r", party=0, plan_digest=bytes(32), body=m.Ask(each_kind()["votes"])))
    proto = party_pb2.Envelope.FromString(parcel.envelope)
    spoil(proto.ask)
    with pytest.raises(ProtocolError):
        wire.unpack(m.Parcel(proto.SerializeToString(), parcel.bulk))


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(ENVELOPES, st.data())
def test_damaged_bytes_are_refused_or_mean_what_they_say(envelope, data):
    parcel = wire.pack(envelope)
    damaged = bytearray(parcel.envelope)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        back = wire.unpack(m.Parcel(bytes(damaged), parcel.bulk))
    except ProtocolError:
        return
    assert same(wire.unpack(wire.pack(back)).body, back.body)


@given(st.binary(max_size=200), st.binary(max_size=40))
def test_noise_is_refused_with_our_own_error(envelope, bulk):
    with pytest.raises(ProtocolError):
        wire.unpack(m.Parcel(envelope, bulk))


def test_a_bulk_that_was_exchanged_is_refused():
    envelope = m.Envelope(run="r", party=0, plan_digest=bytes(32), body=m.Answer(np.arange(3, dtype=np.uint64)))
    parcel = wire.pack(envelope)
    with pytest.raises(ProtocolError, match="bulk"):
        wire.unpack(m.Parcel(parcel.envelope, parcel.bulk[:-8] + bytes(8)))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda p: setattr(p, "version", 1), "version"),
        (lambda p: setattr(p, "plan_digest", b"short"), "digest"),
        (lambda p: p.ClearField("body"), "body"),
        (lambda p: setattr(p, "party", 1 << 25), "party"),
        (lambda p: p.ask_unmask.survivors.append(0), "parties"),
    ],
)
def test_each_rule_of_the_envelope(change, word):
    parcel = wire.pack(m.Envelope(run="r", party=0, plan_digest=bytes(32), body=m.AskUnmask(frozenset({0, 1}))))
    proto = party_pb2.Envelope.FromString(parcel.envelope)
    change(proto)
    with pytest.raises(ProtocolError, match=word):
        wire.unpack(m.Parcel(proto.SerializeToString()))


@pytest.mark.parametrize(
    "version",
    [
        "0.2",
        "v0.2.0",
        "0.2.0 ",
        "0.2.0\n",
        "٠.٢.٠",
        "0.2.0<b>",
        "0.2.0-A",
        "0.2.0" + 28 * "a",
        "1" * 20,
        "\x1b[0m",
        "x" * 10**6,
    ],
)
def test_a_version_of_another_form_is_as_none_at_all(version):
    def place(body):
        return m.Envelope(run="r", party=0, plan_digest=bytes(32), body=body)

    assert wire.unpack(wire.pack(place(m.Opened("digest", None, version)))).body == m.Opened("digest")
    assert wire.unpack(wire.pack(place(m.Opened("digest", None, "0.2.0" + 18 * "a")))).body.version


def test_vectors_that_are_not_finite_or_not_as_many_as_labels_are_refused():
    spec = VotesSpec(top=2)
    query = Votes(spec=spec, vectors=np.eye(2, dtype=np.float32), labels=np.zeros(2, dtype=np.int32))
    parcel = wire.pack(m.Envelope(run="r", party=0, plan_digest=bytes(32), body=m.Ask(query)))
    for bulk in (np.array([[np.nan, 0], [0, 1]], dtype="<f4").tobytes(), parcel.bulk[:-4]):
        proto = party_pb2.Envelope.FromString(parcel.envelope)
        proto.bulk_digest = hashlib.sha256(bulk).digest()
        with pytest.raises(ProtocolError):
            wire.unpack(m.Parcel(proto.SerializeToString(), bulk))


def test_parties_that_get_the_same_query_share_its_bytes():
    query = Votes(spec=VotesSpec(top=1), vectors=np.eye(2, dtype=np.float32), labels=np.zeros(2, dtype=np.int32))
    parcels = wire.pack_all(
        {
            party: m.Envelope(
                run="r",
                party=party,
                plan_digest=bytes(32),
                body=m.Ask(query, m.Delivery({9: bytes([party])}, frozenset({9}))),
            )
            for party in range(3)
        }
    )
    assert len({id(parcel.bulk) for parcel in parcels.values()}) == 1
    assert [wire.unpack(parcel).body.delivery.inbox[9] for parcel in parcels.values()] == [b"\0", b"\1", b"\2"]


def asked_to_share(*adverts):
    return {
        party: m.Envelope(run="r", party=party, plan_digest=bytes(32), body=m.AskShares(dict(enumerate(shares))))
        for party, shares in enumerate(adverts)
    }


def test_parties_that_get_the_same_keys_share_them_and_cannot_change_them():
    one, other = (KeyAdvert(seal_public=bytes([n]) * 32, mask_publics=(), signature=bytes(64)) for n in (1, 2))
    envelopes = asked_to_share([one, other], [one, other], [one, one], [one, other])
    shared = LastValues()
    first, second, third, fourth = (
        wire.unpack(parcel, shared).body.adverts for parcel in wire.pack_all(envelopes).values()
    )
    assert first is second
    assert first == fourth == {0: one, 1: other}
    assert third == {0: one, 1: one}
    with pytest.raises(TypeError):
        first[0] = other


@settings(max_examples=40)
@given(st.lists(st.tuples(PARTIES, BODIES), max_size=6, unique_by=lambda pair: pair[0]), st.integers(1, 3))
def test_bytes_for_many_parties_are_those_for_each(sent, times):
    envelopes = {
        party * 3 + copy: m.Envelope(run="r", party=party, plan_digest=bytes(32), body=body)
        for party, body in sent
        for copy in range(times)
    }
    assert wire.pack_all(envelopes) == {party: wire.pack(envelope) for party, envelope in envelopes.items()}


def test_a_parcel_finds_its_partition():
    parcel = m.Parcel(b"abc", b"defg")
    assert wire.unpack_parcel(wire.pack_parcel(parcel, 7)) == (parcel, 7)
    with pytest.raises(ProtocolError):
        wire.unpack_parcel(b"\xff\xff\xff")
