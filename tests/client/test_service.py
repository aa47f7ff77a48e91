import errno
import json
import logging
import stat
from contextlib import closing
from dataclasses import replace
from unittest.mock import Mock

import grpc
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from client.channel import _METHOD, Channel, serve_socket
from client.records import PartyRecords
from common import messages as m
from common import wire
from common.errors import CaucusError, ConfigError, ProtocolError
from common.parcels import parcel_of
from common.plan.plan import Plan
from common.secagg import ring
from common.versions import CAUCUS
from tests.support.federations import (
    CANARY,
    ENCODER,
    federation,
    lenient,
    plan,
    query,
    records,
    roster,
    service,
    true_counts,
)
from tests.support.party_requests import PLAIN, on_socket, opened, send


def test_the_plain_answer_is_the_counts_and_this_partys_whole_noise(tmp_path):
    reply = send(opened(tmp_path), m.Ask(query()))
    noise = ring.decode(reply.words.copy()) - true_counts(query(), records(0))
    assert 0 < np.abs(noise).max() < 40 * PLAIN.queries[0].scale


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda plan: {"body": m.Open(b"{}")}, m.Reason.MALFORMED),
        (lambda plan: {"body": m.Open(b"\xff")}, m.Reason.MALFORMED),
        (lambda plan: {"plan_digest": bytes(32)}, m.Reason.UNPLANNED),
        (lambda plan: {"agreed": replace(plan, encoder="other")}, m.Reason.ENCODER),
        (lambda plan: {"run": "a\nb"}, m.Reason.MALFORMED),
        (lambda plan: {"run": ""}, m.Reason.MALFORMED),
        (lambda plan: {"run": "x" * 201}, m.Reason.MALFORMED),
        (lambda plan: {"body": m.Open(b"[" * m.LARGEST_PLAN)}, m.Reason.MALFORMED),
    ],
)
def test_a_plan_that_does_not_fit_is_refused_with_a_coarse_reason(tmp_path, spoil, reason):
    spoilt = spoil(PLAIN)
    agreed = spoilt.pop("agreed", PLAIN)
    body = spoilt.pop("body", m.Open(agreed.to_json()))
    assert send(service(tmp_path, 0), body, agreed=agreed, **spoilt) == m.Refusal(reason)


def test_records_are_embedded_once_at_the_start_whatever_a_plan_asks_for(tmp_path, monkeypatch):
    texts, encode = [], ENCODER.encode
    monkeypatch.setattr(type(ENCODER), "encode", lambda _, batch: texts.extend(batch) or encode(batch))
    party = service(tmp_path, 0, records(0))
    assert texts == [record.text for record in records(0)]
    question = query()
    texts.clear()
    for run, labels in (("r", ("a", "b")), ("r", ("a", "b")), ("other", ("b",)), ("third", ("c",))):
        agreed = replace(PLAIN, labels=labels)
        assert isinstance(send(party, m.Open(agreed.to_json()), agreed=agreed, run=run), m.Opened)
    send(party, m.Open(PLAIN.to_json()), run="r")
    assert isinstance(send(party, m.Ask(question), run="r"), m.Answer)
    assert texts == []


def test_what_is_not_for_this_party_or_comes_before_opening_is_refused(tmp_path):
    assert send(service(tmp_path, 0), m.Ask(query())) == m.Refusal(m.Reason.OUT_OF_ORDER)
    party = opened(tmp_path)
    assert send(party, m.Ask(query()), party=1) == m.Refusal(m.Reason.MALFORMED)
    assert isinstance(send(party, m.Ask(query())), m.Answer)
    assert send(party, m.Ask(query())) == m.Refusal(m.Reason.OUT_OF_ORDER)


@pytest.mark.parametrize(("others", "reason"), [((), m.Reason.TOO_FEW), ((9,), m.Reason.IDENTITY)])
def test_set_up_of_nobody_else_or_with_a_stranger_is_refused(others, reason, tmp_path):
    agreed = plan(3)
    party = service(tmp_path, 0)
    advert = send(party, m.Open(agreed.to_json()), agreed=agreed).advert
    assert send(party, m.AskShares(dict.fromkeys((0, *others), advert)), agreed=agreed) == m.Refusal(reason)


def test_a_plan_for_signed_parties_needs_this_partys_own_roster(tmp_path):
    agreed = plan(3, roster=roster(3).digest.hex())
    for known_roster in (None, roster(4)):
        refused = send(service(tmp_path, 0, known=known_roster), m.Open(agreed.to_json()), agreed=agreed)
        assert refused == m.Refusal(m.Reason.ROSTER)
    assert isinstance(send(service(tmp_path, 0, known=roster(3)), m.Open(agreed.to_json()), agreed=agreed), m.Opened)


def test_a_plan_has_all_parties_of_this_partys_own_roster(tmp_path, caplog):
    assert send(service(tmp_path, 3), m.Open(PLAIN.to_json()), party=3) == m.Refusal(m.Reason.ROSTER)
    party = service(tmp_path, 0, known=roster(3))
    for count in (2, 4):
        other = plan(count)
        assert send(party, m.Open(other.to_json()), agreed=other) == m.Refusal(m.Reason.ROSTER)
        assert f"got {count}" in caplog.text
    agreed = plan(3)
    assert isinstance(send(party, m.Open(agreed.to_json()), agreed=agreed), m.Opened)


def test_closing_forgets_the_run_and_its_answers(tmp_path):
    party = opened(tmp_path)
    send(party, m.Ask(query()))
    assert send(party, m.Close()) == m.Closed()
    assert [entry.answer for entry in party._ledger.entries()] == [None]
    assert send(party, m.Ask(query()), index=1) == m.Refusal(m.Reason.OUT_OF_ORDER)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_hostile_parcels_get_a_refusal_and_no_private_byte(tmp_path, caplog, data):
    party = opened(tmp_path)
    caplog.set_level(logging.DEBUG)
    ask = data.draw(st.sampled_from([m.Open(PLAIN.to_json()), m.Ask(query(1)), m.AskUnmask(frozenset({0})), m.Close()]))
    parcel = wire.pack(m.Envelope(run="run", party=0, plan_digest=PLAIN.digest(), index=1, body=ask))
    spoilt = bytearray(parcel.envelope)
    for _ in range(data.draw(st.integers(1, 3))):
        spoilt[data.draw(st.integers(0, len(spoilt) - 1))] ^= data.draw(st.integers(1, 255))
    for envelope in (bytes(spoilt), data.draw(st.binary(max_size=60))):
        reply = party.handle(m.Parcel(envelope, parcel.bulk))
        assert wire.unpack(reply).body != m.Refusal(m.Reason.INTERNAL)
        assert CANARY.encode() not in reply.envelope + reply.bulk
    assert CANARY not in caplog.text
    assert CANARY not in repr(party.__dict__)


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        (ValueError(CANARY), "(INTERNAL): ValueError"),
        (OSError(errno.ENOSPC, CANARY, CANARY), "(INTERNAL): OSError: No space"),
    ],
)
def test_error_deep_inside_is_coarse_and_its_text_stays_here(error, logged, tmp_path, monkeypatch, caplog):
    party = opened(tmp_path)
    monkeypatch.setattr("client.answer.contribute.contribution", Mock(side_effect=error))
    assert send(party, m.Ask(query())) == m.Refusal(m.Reason.INTERNAL)
    assert logged in caplog.text
    assert CANARY not in caplog.text


def test_true_counts_never_leave(tmp_path):
    agreed = plan(3)
    services = [service(tmp_path, party) for party in range(3)]
    sent = []

    def watch(_, message):
        sent.append(parcel_of(message.content).bulk)
        return (message,)

    parties = federation(tmp_path, services, agreed, on_reply=watch)
    parties.open()
    parties.ask("votes", 0, query())
    counts = [true_counts(query(), records(party)) for party in range(3)]
    assert len([bulk for bulk in sent if bulk]) == 3
    for bulk in filter(None, sent):
        for true in (*counts, sum(counts)):
            # Masked words are uniform modulo 2^64: one of 24 equals a given number with probability 1e-18.
            assert not (np.frombuffer(bulk, dtype="<u8") == ring.encode(true)).any()


def test_without_masks_the_counts_leave_under_noise_only(tmp_path):
    for party in range(3):
        host = service(tmp_path, party)
        send(host, m.Open(PLAIN.to_json()))
        words = send(host, m.Ask(query()), party=party).words
        # A noise of sigma 20 is zero in 2% of the coordinates: in 8 or more of 24 with probability 2e-8.
        assert (words == ring.encode(true_counts(query(), records(party)))).sum() < 8


def test_whether_the_plan_knows_all_labels_of_its_records_is_not_told(tmp_path):
    for party, labels in enumerate([("a",), ("c", "d")]):
        agreed = replace(PLAIN, labels=labels)
        reply = send(service(tmp_path, party), m.Open(agreed.to_json()), agreed=agreed)
        assert reply == m.Opened(agreed.encoder, None, CAUCUS)


def test_a_limit_refuses_before_any_record_is_looked_at(tmp_path, monkeypatch):
    host = service(tmp_path, 0, limits=lenient(max_epsilon=3.0))
    monkeypatch.setattr(PartyRecords, "for_plan", lambda *_, **__: pytest.fail("private records were touched"))
    assert send(host, m.Open(PLAIN.to_json())) == m.Refusal(m.Reason.OVER_LIMIT)


def test_a_service_that_died_in_mid_query_answers_again_to_the_last_bit_and_nothing_else(tmp_path):
    first = send(opened(tmp_path), m.Ask(query())).words
    for _ in range(2):
        again = send(opened(tmp_path), m.Ask(query()))
        assert np.array_equal(again.words, first)
    assert send(opened(tmp_path), m.Ask(query(1))) == m.Refusal(m.Reason.OVER_LIMIT)
    other = replace(PLAIN, max_records_per_party=77)
    assert send(opened(tmp_path, other), m.Ask(query()), agreed=other) == m.Refusal(m.Reason.OVER_LIMIT)
    assert send(opened(tmp_path), m.Close()) == m.Closed()
    assert send(opened(tmp_path), m.Ask(query())) == m.Refusal(m.Reason.OVER_LIMIT)


def test_what_is_refused_for_its_content_leaves_the_run_as_it_was(tmp_path):
    party = opened(tmp_path)
    for wrong in (query(top=5), query(max_records=2)):
        assert send(party, m.Ask(wrong)) == m.Refusal(m.Reason.UNPLANNED)
    assert send(party, m.Open(b"{}")) == m.Refusal(m.Reason.MALFORMED)
    assert send(party, m.Close(), run="other") == m.Closed()
    assert isinstance(send(party, m.Ask(query())), m.Answer)


def test_an_open_that_fails_over_the_records_leaves_the_run_before_it_open(tmp_path, monkeypatch):
    party = opened(tmp_path)
    other = replace(PLAIN, labels=("b", "a"))
    with monkeypatch.context() as patch:
        patch.setattr(PartyRecords, "for_plan", Mock(side_effect=MemoryError))
        assert send(party, m.Open(other.to_json()), agreed=other) == m.Refusal(m.Reason.INTERNAL)
    assert send(party, m.Ask(query()), agreed=other) == m.Refusal(m.Reason.UNPLANNED)
    assert isinstance(send(party, m.Ask(query())), m.Answer)


# Scales above 1e4 are left out: the exact accounting of such a grid takes minutes.
WILD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 4),
    st.sampled_from([10**400, 1e308, -0.0, 5e-324, "inf", "", [], {}, float("inf"), float("nan")]),
    st.floats(-1e4, 1e4),
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_no_plan_brings_a_party_down(tmp_path, data):
    plain = json.loads(PLAIN.to_json())
    part = data.draw(st.sampled_from([plain, plain["queries"][0], plain["queries"][0]["spec"]]))
    part[data.draw(st.sampled_from(sorted(part)))] = data.draw(WILD)
    try:
        digest = Plan.from_dict(plain).digest()
    except (CaucusError, ArithmeticError, ValueError):
        digest = bytes(32)
    limits = lenient(lifetime_epsilon=8.0, corrupt=0.3)
    reply = send(service(tmp_path, 0, limits=limits), m.Open(json.dumps(plain).encode()), plan_digest=digest)
    assert reply != m.Refusal(m.Reason.INTERNAL)


def test_over_a_unix_socket_parties_answer_as_in_process(tmp_path):
    parties = {0: service(tmp_path, 0), 1: service(tmp_path, 1)}
    address = f"unix:{tmp_path / 'socket'}"
    with on_socket(parties, address):
        assert stat.S_IMODE((tmp_path / "socket").stat().st_mode) == 0o600
        opening = wire.pack(m.Envelope(run="r", party=0, plan_digest=PLAIN.digest(), body=m.Open(PLAIN.to_json())))
        for number in (0, 1):
            with closing(Channel(address, number)) as channel:
                assert channel.handle(opening) == parties[number].handle(opening)
        with closing(Channel(address, 5)) as channel, pytest.raises(ProtocolError, match="party service"):
            channel.handle(opening)
        with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError):
            channel.unary_unary(_METHOD, None, None)(b"\xff\xff")
    with closing(Channel(address, 0, patience=0.1)) as channel, pytest.raises(ProtocolError, match="party service"):
        channel.handle(opening)
    with pytest.raises(ConfigError, match="unix"):
        serve_socket(parties, "127.0.0.1:0")


def test_a_party_without_records_answers_noise_alone(tmp_path):
    reply = send(opened(tmp_path, private=[]), m.Ask(query()))
    assert np.abs(ring.decode(reply.words.copy())).max() < 40 * PLAIN.queries[0].scale
