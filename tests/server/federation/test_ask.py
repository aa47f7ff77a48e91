"""The coordinator's side of a query, against real party services without Flower between them."""

from dataclasses import replace

import numpy as np
import pytest

from common import messages as m
from common import wire
from common.errors import AwaitingError, CheckpointError, DropoutError, ProtocolError, RejectedError
from common.ledger.ledger import Ledger
from common.secagg.messages import VERSION
from server.methods.wasp import VOTES
from tests.support.direct_federation import World
from tests.support.federations import lenient


@pytest.mark.parametrize("secure", [True, False])
def test_without_noise_the_total_is_the_sum_of_the_parties_votes(secure, tmp_path):
    world = World(tmp_path, secure=secure, epsilon=float("inf"))
    coordinator = world.coordinator()
    answered = coordinator.ask(VOTES, 0, world.query)
    np.testing.assert_array_equal(answered.values, world.truth(range(3)))
    assert answered.survivors == 3
    steps = ["Ask", "AskUnmask"] if secure else ["Ask"]
    assert world.network.sent == [step for step in steps for _ in range(3)]


def test_an_answered_query_is_not_asked_again_and_is_closed(tmp_path):
    world = World(tmp_path)
    total = world.coordinator().ask(VOTES, 0, world.query).values
    again = world.coordinator()
    np.testing.assert_array_equal(again.ask(VOTES, 0, world.query).values, total)
    assert not world.network.sent
    assert [entry.committed for entry in Ledger(tmp_path / "ledger.db").entries()] == [True]


@pytest.mark.parametrize("lost", ["Ask", "AskUnmask"])
def test_a_round_that_fails_at_any_step_is_asked_again_with_the_same_noise(lost, tmp_path):
    world = World(tmp_path)
    coordinator = world.coordinator()

    def drop(party, parcel):
        request = world.network.sent[-1]
        return None if request == lost and party > 0 else parcel

    world.network.change = drop
    with pytest.raises(DropoutError):
        coordinator.ask(VOTES, 0, world.query)
    world.network.change = lambda _, parcel: parcel
    total = coordinator.ask(VOTES, 0, world.query).values
    np.testing.assert_array_equal(world.coordinator().ask(VOTES, 0, world.query).values, total)
    for party in range(3):
        (entry,) = Ledger(tmp_path / f"{party}.db").entries()
        assert entry.index == 0


def test_who_does_not_sign_the_survivors_is_named_with_the_reason(tmp_path):
    world = World(tmp_path, malicious=True)
    coordinator = world.coordinator()

    def refuse(party, parcel):
        envelope = wire.unpack(parcel)
        unsigned = party == 1 and isinstance(envelope.body, m.Agreement)
        return wire.pack(replace(envelope, body=m.Refusal(m.Reason.INTERNAL))) if unsigned else parcel

    world.network.change = refuse
    with pytest.raises(DropoutError, match=r"got 2 \(party 1 refused: INTERNAL"):
        coordinator.ask(VOTES, 0, world.query)


def test_another_query_in_its_place_is_neither_asked_nor_answered(tmp_path):
    world = World(tmp_path, epsilon=float("inf"))
    coordinator = world.coordinator()
    world.network.change = lambda *_: None
    with pytest.raises(DropoutError):
        coordinator.ask(VOTES, 0, world.query)
    world.network.change = lambda _, parcel: parcel
    other = replace(world.query, vectors=np.roll(world.query.vectors, 1, axis=0))
    with pytest.raises(CheckpointError):
        coordinator.ask(VOTES, 0, other)
    np.testing.assert_array_equal(coordinator.ask(VOTES, 0, world.query).values, world.truth(range(3)))
    with pytest.raises(CheckpointError):
        coordinator.ask(VOTES, 0, other)


@pytest.mark.parametrize("secure", [True, False])
def test_a_sum_that_honest_parties_cannot_have_sent_is_refused_and_never_used(secure, tmp_path):
    world = World(tmp_path, secure=secure)
    coordinator = world.coordinator()

    def garbled(party, parcel):
        envelope = wire.unpack(parcel)
        if party != 1 or not isinstance(envelope.body, m.Answer):
            return parcel
        return wire.pack(replace(envelope, body=m.Answer(envelope.body.words * np.uint64(0x9E3779B97F4A7C15))))

    world.network.change = garbled
    with pytest.raises(ProtocolError, match=rf"{VOTES}: a coordinate;.* at query 0: party 0, party 1, party 2"):
        coordinator.ask(VOTES, 0, world.query)
    assert [entry.committed for entry in Ledger(tmp_path / "ledger.db").entries()] == [False]
    world.network.change = lambda _, parcel: parcel
    assert world.coordinator().ask(VOTES, 0, world.query).survivors == 3


def test_dropouts_within_the_plan_leave_the_exact_sum_of_the_rest(tmp_path):
    world = World(tmp_path, epsilon=float("inf"), parties=4, max_dropouts=1)
    coordinator = world.coordinator()
    world.network.change = lambda party, parcel: None if party == 2 and world.network.sent[-1] == "Ask" else parcel
    answered = coordinator.ask(VOTES, 0, world.query)
    np.testing.assert_array_equal(answered.values, world.truth([0, 1, 3]))
    assert answered.survivors == 3


def test_a_refusal_is_named_with_its_coarse_reason(tmp_path):
    world = World(tmp_path, limits=lenient(max_epsilon=1.0))
    with pytest.raises(RejectedError, match=r"got 0 \(party 0 refused: OVER_LIMIT,"):
        world.coordinator()
    assert world.network.sent[3:] == ["Close"] * 3  # so that nobody decides about it any more


def test_parties_that_await_a_person_alone_are_no_failure(tmp_path):
    def awaiting(party, parcel):
        return wire.pack(replace(wire.unpack(parcel), body=m.Refusal(m.Reason.AWAITING))) if party in away else parcel

    world = World(tmp_path)
    world.network.change = awaiting
    away = {0, 2}
    with pytest.raises(AwaitingError, match="party 0 and party 2") as caught:
        world.coordinator()
    assert caught.value.parties == (0, 2)
    world.network.change = lambda party, parcel: None if party == 1 else awaiting(party, parcel)
    with pytest.raises(DropoutError, match=r"party 0 .*\(caucus-party approve\); party 1 ") as caught:
        world.coordinator()
    assert not isinstance(caught.value, AwaitingError)


def test_another_encoder_is_one_clear_line_on_both_sides(tmp_path, caplog):
    world = World(tmp_path)
    world.plan = replace(world.plan, encoder="f" * 64)
    with pytest.raises(DropoutError, match=r"party 0 refused: ENCODER, not ffffffffffffffff: .*; party 1"):
        world.coordinator()
    (line,) = (record.getMessage() for record in caplog.records if record.getMessage().startswith("party 0 refuses"))
    assert all(fact in line for fact in ("(ENCODER)", f"expected '{'f' * 64}'; got e"))


def changed(**changes):
    return lambda parcel: wire.pack(replace(wire.unpack(parcel), **changes))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (changed(run="other"), "out of place"),
        (changed(attempt=7), "out of place"),
        (changed(index=1), "out of place"),
        (changed(plan_digest=bytes(32)), "out of place"),
        (changed(body=m.Closed()), "out of place"),
        (changed(party=2), "answered as number 2"),
        (lambda _: m.Parcel(b"\xff\xff", b""), "unreadable reply"),
    ],
)
def test_a_reply_that_is_out_of_place_of_another_party_or_unreadable_is_no_reply(change, said, tmp_path):
    world = World(tmp_path)
    coordinator = world.coordinator()
    world.network.change = lambda party, parcel: change(parcel) if party == 1 else parcel
    with pytest.raises(DropoutError, match=f"party 1 {said}"):
        coordinator.ask(VOTES, 0, world.query)


def test_a_party_of_another_version_is_named_with_both(tmp_path, monkeypatch):
    world = World(tmp_path)

    def newer(party, parcel):
        if party != 1:
            return parcel
        envelope = wire.unpack(parcel)
        with monkeypatch.context() as patched:
            patched.setattr(wire, "VERSION", VERSION + 1)
            return wire.pack(envelope)

    world.network.change = newer
    with pytest.raises(DropoutError, match=f"party 1 .* expected {VERSION}; got {VERSION + 1}"):
        world.coordinator()


def test_an_answer_of_another_length_is_refused(tmp_path):
    world = World(tmp_path, secure=False)
    coordinator = world.coordinator()

    def shorten(party, parcel):
        envelope = wire.unpack(parcel)
        return wire.pack(replace(envelope, body=m.Answer(envelope.body.words[:-1])))

    world.network.change = shorten
    with pytest.raises(ProtocolError, match="party 0"):
        coordinator.ask(VOTES, 0, world.query)


def test_closing_erases_every_kept_answer(tmp_path):
    world = World(tmp_path)
    coordinator = world.coordinator()
    coordinator.ask(VOTES, 0, world.query)
    coordinator.close()
    for party in range(3):
        (entry,) = Ledger(tmp_path / f"{party}.db").entries()
        assert (entry.committed, entry.answer) == (True, None)
