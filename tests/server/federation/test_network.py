"""Which party a node is, whom a run waits for, and what is said of those who do not answer; the Grid is a stand-in."""

import logging
import time

import pytest
from flwr.app import Message

from common import messages as m
from common import wire
from common.errors import DropoutError, ProtocolError
from server.federation import network
from server.federation.network import FlowerNetwork
from server.flower.grid import become_coordinator, set_id

PARCEL = m.Parcel(b"a request")


def reply(party):
    body = m.Envelope(run="r", party=party, plan_digest=bytes(32), body=m.Closed())
    return wire.pack(body)


class Grid:
    """Nodes that answer at once, each with its own reply; None: it is silent."""

    def __init__(self, replies, connected=None):
        become_coordinator()
        self.replies, self.waiting = replies, {}
        self.connected = connected or [list(replies)]

    def get_node_ids(self):
        return self.connected.pop(0) if len(self.connected) > 1 else self.connected[0]

    def push_messages(self, messages):
        identities = []
        for message in messages:
            identity = f"m{message.metadata.dst_node_id}"
            set_id(message, identity)
            self.waiting[identity] = message
            identities.append(identity)
        return identities

    def pull_messages(self, identities):
        replies = []
        for identity in identities:
            message = self.waiting.get(identity)
            parcel = message and self.replies[message.metadata.dst_node_id]
            if parcel is None:
                continue
            del self.waiting[identity]
            content = message.content.copy()
            content.config_records["envelope"]["bytes"] = parcel.envelope
            replies.append(Message(content, reply_to=message))
        return replies


@pytest.fixture(autouse=True)
def quick(monkeypatch, caplog):
    monkeypatch.setattr(network, "POLL_SECONDS", 0.01)
    caplog.set_level(logging.INFO)


def test_a_node_that_was_enrolled_is_the_party_of_its_enrolment_whatever_it_says():
    grid = Grid({70: reply(1), 80: reply(0)})
    joined = FlowerNetwork(grid, timeout=5, enrolled={70: 0, 80: 1}).join(PARCEL, 2)
    assert {party: wire.sender(parcel) for party, parcel in joined.items()} == {0: 1, 1: 0}


def test_a_node_that_was_not_enrolled_is_the_party_that_it_says_it_is(caplog):
    joined = FlowerNetwork(Grid({1: reply(1), 2: reply(0), 3: m.Parcel(b"\xff")}), timeout=5).join(PARCEL, 3)
    assert sorted(joined) == [0, 1]
    assert "node 3: " in caplog.text
    with pytest.raises(ProtocolError, match="two for party 1"):
        FlowerNetwork(Grid({1: reply(1), 2: reply(1)}), timeout=5).join(PARCEL, 2)


def test_a_run_waits_for_parties_that_it_can_name(caplog):
    grid = Grid({70: reply(0), 80: reply(1), 90: reply(2)}, [[80], [80, 90], [70, 80, 90]])
    joined = FlowerNetwork(grid, timeout=600, enrolled={70: 0, 80: 1, 90: 2}).join(PARCEL, 3)
    assert sorted(joined) == [0, 1, 2]
    first, second = (message for message in caplog.messages if "600 s" in message)
    assert (first.startswith("1 of 3"), "party 0 and party 2" in first) == (True, True)
    assert (second.startswith("2 of 3"), "party 0" in second, "party 2" in second) == (True, True, False)
    FlowerNetwork(Grid({1: reply(0)}), timeout=0.05).join(PARCEL, 2)
    assert any(message.startswith("1 of 2") and "0.05 s" in message for message in caplog.messages)


def test_replies_that_come_while_another_one_takes_all_the_time_are_read():
    class Slow(Grid):
        def pull_messages(self, identities):
            replies = super().pull_messages(identities[:1])
            time.sleep(0.05)
            return replies

    assert FlowerNetwork(Slow({1: reply(0), 2: reply(1)}), timeout=0.04).join(PARCEL, 2).keys() == {0, 1}


def test_nobody_there_and_nobody_who_answers(caplog):
    with pytest.raises(DropoutError, match="nodes; expected 2; got 0"):
        FlowerNetwork(Grid({}, [[]]), timeout=0).join(PARCEL, 2)
    assert FlowerNetwork(Grid({70: None}), timeout=0, enrolled={70: 1}).join(PARCEL, 1) == {}
    assert any(message.startswith("party 1: ") and "0 s" in message for message in caplog.messages)


def test_while_replies_are_awaited_a_line_counts_those_that_came_and_names_the_others_ever_more_rarely(
    monkeypatch, caplog
):
    monkeypatch.setattr(network, "LONG", 0.02)
    asked = FlowerNetwork(Grid({70: reply(0), 80: None}), timeout=0.2, enrolled={70: 0, 80: 1})
    assert asked.join(PARCEL, 2).keys() == {0}
    lines = [message for message in caplog.messages if message.startswith("1 of 2")]
    assert 1 <= len(lines) <= 4
    assert all("party 1" in line and "party 0" not in line for line in lines)


@pytest.mark.parametrize(("enrolled", "waited"), [({70: 0}, 0.2), ({}, 0.0)])
def test_a_hospital_has_its_schedules_time_before_the_timeout_begins(enrolled, waited, caplog):
    asked = FlowerNetwork(Grid({70: reply(0)}), timeout=0.0, enrolled=enrolled)
    asked.join(PARCEL, 1)
    asked._grid.replies[70] = None
    for send in (lambda: asked.exchange({0: PARCEL}, computing=0.2), lambda: asked.join(PARCEL, 1, computing=0.2)):
        began = time.monotonic()
        caplog.clear()
        assert send() == {}
        assert waited <= time.monotonic() - began
        assert any(message.startswith("party 0: ") and f"{waited:g} s" in message for message in caplog.messages)


def test_a_reply_may_take_what_is_left_of_its_exchange_and_a_grace(monkeypatch):
    monkeypatch.setattr(network, "GRACE_SECONDS", 0.1)
    asked = FlowerNetwork(Grid({1: reply(0)}), timeout=600)
    assert asked.seconds_left == 0.1
    asked.join(PARCEL, 1)
    assert 590 < asked.seconds_left <= 600
