"""A message that is larger than any that may come is refused before it is parsed or hashed, with the reason."""

from typing import get_args

import grpc
import pytest

from client import channel
from client.channel import Channel
from common import messages as m
from common import wire
from common.errors import ProtocolError, TooLargeError
from common.secagg.keys import SEAL_OVERHEAD
from common.secagg.messages import KEY_BYTES, KeyAdvert
from common.secagg.shamir import PAIR_BYTES
from common.wire import LARGEST_ROSTER
from tests.support.federations import query, service
from tests.support.party_requests import PLAIN, on_socket, opened, send

BODIES = {
    m.Open: m.Open(PLAIN.to_json()),
    m.AskShares: m.AskShares({}),
    m.Ask: m.Ask(query()),
    m.AskAgree: m.AskAgree(frozenset({0, 1})),
    m.AskUnmask: m.AskUnmask(frozenset({0, 1})),
    m.Close: m.Close(),
    m.Release: m.Release(b'{"text": "one"}\n'),
}
IN_RUN = m.largest_request(parties=PLAIN.parties, degree=PLAIN.degree, answers=PLAIN.total_queries)
"""Limit of an envelope's size in a run of the plan, in bytes."""


def parcel(body, *, envelope=0, bulk=0):
    """Return the body's parcel, grown to these sizes: protobuf skips a field that it does not know."""
    made = wire.pack(m.Envelope(run="run", party=0, plan_digest=PLAIN.digest(), body=body))
    padding = b""
    if envelope:
        rest = envelope - len(made.envelope) - 6  # after a tag of two bytes, and the length in four
        size = [rest >> 7 * place & 127 | 128 * (place < 3) for place in range(4)]
        padding = b"\xfa\x7f" + bytes(size) + bytes(rest)
    return m.Parcel(made.envelope + padding, made.bulk.ljust(bulk, b"\0"))


def reply_unread(monkeypatch, handle, given):
    """Return the body of the reply to a parcel; fail if the parcel is parsed or hashed."""
    packing, digest = wire.party_pb2.Envelope, wire._digest

    class Unread:
        FromString = staticmethod(lambda _: pytest.fail("the envelope is parsed"))

        def __new__(cls, **fields):
            return packing(**fields)

    with monkeypatch.context() as patched:
        patched.setattr(wire.party_pb2, "Envelope", Unread)
        patched.setattr(wire, "_digest", lambda data: pytest.fail("the bulk is hashed") if data else digest(data))
        reply = handle(given)
    return wire.unpack(reply).body


def test_each_kind_of_request_has_its_body():
    assert set(BODIES) == set(get_args(m.Request))


def test_an_envelope_that_is_grown_is_read_up_to_the_limit():
    given = parcel(m.Close(), envelope=IN_RUN)
    assert len(given.envelope) == IN_RUN
    assert wire.unpack(given, largest=IN_RUN).body == m.Close()
    with pytest.raises(TooLargeError, match=f"{IN_RUN - 1:,} bytes; got {IN_RUN:,}"):
        wire.unpack(given, largest=IN_RUN - 1)


@pytest.mark.parametrize("kind", BODIES)
def test_in_a_run_an_envelope_beyond_its_keys_and_shares_is_malformed(kind, tmp_path, monkeypatch, caplog):
    party = opened(tmp_path)
    given = parcel(BODIES[kind], envelope=IN_RUN + 1)
    assert reply_unread(monkeypatch, party.handle, given) == m.Refusal(m.Reason.MALFORMED)
    assert f"envelope; expected at most {IN_RUN:,} bytes" in caplog.text
    assert isinstance(send(party, m.Ask(query())), m.Answer)  # the run goes on


@pytest.mark.parametrize("kind", BODIES)
def test_without_a_run_an_envelope_beyond_a_plan_is_out_of_order(kind, tmp_path, monkeypatch):
    party = service(tmp_path, 0)
    given = parcel(BODIES[kind], envelope=m.LARGEST_OPENING + 1)
    assert reply_unread(monkeypatch, party.handle, given) == m.Refusal(m.Reason.OUT_OF_ORDER)
    assert isinstance(send(party, m.Open(PLAIN.to_json())), m.Opened)


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("in_run", [True, False])
def test_a_bulk_beyond_the_limit_is_malformed(kind, in_run, tmp_path, monkeypatch, caplog):
    party = opened(tmp_path) if in_run else service(tmp_path, 0)
    monkeypatch.setattr(m, "LARGEST_BULK", 10_000)
    given = parcel(BODIES[kind], bulk=10_001)
    assert reply_unread(monkeypatch, party.handle, given) == m.Refusal(m.Reason.MALFORMED)
    assert "bulk;" in caplog.text


@pytest.mark.parametrize("kind", BODIES)
def test_the_relay_refuses_in_place_of_the_service(kind, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(m, "LARGEST_BULK", 10_000)
    relay = Channel(f"unix:{tmp_path / 'nobody'}", 0, patience=0.0)
    try:
        for given in (parcel(BODIES[kind], bulk=10_001), parcel(BODIES[kind], envelope=m.LARGEST_ENVELOPE + 1)):
            assert reply_unread(monkeypatch, relay.handle, given) == m.Refusal(m.Reason.MALFORMED)
            assert "is refused: " in caplog.text
    finally:
        relay.close()


def test_the_service_does_not_read_what_a_false_relay_sends_beyond_both_limits(tmp_path, monkeypatch):
    monkeypatch.setattr(channel, "_SIZE", [("grpc.max_receive_message_length", 10_000)])
    monkeypatch.setattr(wire, "unpack_parcel", lambda _: pytest.fail("the parcel is parsed"))
    address = f"unix:{tmp_path / 'socket'}"
    served = on_socket({0: service(tmp_path, 0)}, address)
    with served, grpc.insecure_channel(address) as false, pytest.raises(grpc.RpcError) as error:
        false.unary_unary(channel._METHOD, None, None)(bytes(10_001))
    assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_both_sides_of_the_socket_read_no_more_than_a_parcel():
    ((name, most),) = channel._SIZE
    assert name == "grpc.max_receive_message_length"
    assert m.LARGEST_ENVELOPE + m.LARGEST_BULK < most < 1.001 * (m.LARGEST_ENVELOPE + m.LARGEST_BULK)


@pytest.mark.parametrize(("parties", "degree"), [(2, 1), (50, 49), (300, 299), (300, 40), (1000, 10)])
@pytest.mark.parametrize("answers", [1, 7, 200])
def test_keys_and_shares_of_all_parties_for_all_answers_are_within_the_limit(parties, degree, answers):
    limit = m.largest_request(parties=parties, degree=degree, answers=answers) - m.LARGEST_PLAN
    advert = KeyAdvert(seal_public=bytes(KEY_BYTES), mask_publics=(b"x" * KEY_BYTES,) * answers, signature=b"x" * 64)
    sealed = dict.fromkeys(range(LARGEST_ROSTER - degree, LARGEST_ROSTER), bytes(answers * PAIR_BYTES + SEAL_OVERHEAD))
    everybody = range(LARGEST_ROSTER - parties, LARGEST_ROSTER)
    bodies = (
        m.AskShares(dict.fromkeys(everybody, advert)),
        m.Shares(sealed),
        m.Ask(query(), m.Delivery(sealed, frozenset(everybody))),
        m.AskUnmask(frozenset(everybody), dict.fromkeys(everybody, bytes(64))),
    )
    sizes = [
        len(wire.pack(m.Envelope(run="r" * 100, party=0, plan_digest=PLAIN.digest(), body=body)).envelope)
        for body in bodies
    ]
    assert max(sizes) < limit < 2 * max(sizes) + m.LARGEST_OPENING


def test_a_plan_that_no_hospital_would_store_is_not_sent():
    assert m.Open(bytes(m.LARGEST_PLAN)).first == 0
    with pytest.raises(ProtocolError, match="65,536 bytes; got 65,537"):
        m.Open(bytes(m.LARGEST_PLAN + 1))
