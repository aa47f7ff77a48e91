"""The in-process Grid against Flower's real messages and our real relay and network."""

import pytest

from client.app import relay
from common import messages as m
from common import wire
from server.federation.network import FlowerNetwork
from simulations.federation.local_grid import LocalGrid


class Counter:
    """A party that says who it is and echoes the bulk."""

    def __init__(self, party):
        self.party = party
        self.seen = 0

    def handle(self, parcel):
        self.seen += 1
        envelope = wire.unpack(parcel)
        return wire.pack(m.Envelope(run=envelope.run, party=self.party, plan_digest=bytes(32), body=m.Opened("e")))


def opening(party=0):
    return wire.pack(m.Envelope(run="r", party=party, plan_digest=bytes(32), body=m.Open(b"plan")))


def network(parties, timeout=0.01, **faults):
    grid = LocalGrid(relay(lambda context: parties[context.node_config["partition-id"]]), len(parties), **faults)
    return FlowerNetwork(grid, timeout=timeout), grid


def test_each_party_gets_its_own_parcel_and_is_known_by_its_name():
    # Party numbers need not follow the nodes' order.
    parties = [Counter(2), Counter(0), Counter(1)]
    net, grid = network(parties)
    assert sorted(net.join(opening(), 3)) == [0, 1, 2]
    replies = net.exchange({2: opening(2)})
    assert list(replies) == [2]
    assert [party.seen for party in parties] == [2, 1, 1]
    assert min(grid.bytes_sent, grid.bytes_received) > 3 * 32  # the plan digest in each message


@pytest.mark.parametrize("way", ["on_request", "on_reply"])
def test_a_lost_message_is_a_missing_reply(way):
    lost = {way: lambda partition, message: () if partition == 1 else (message,)}
    net, _ = network([Counter(0), Counter(1), Counter(2)], **lost)
    assert sorted(net.join(opening(), 3)) == [0, 2]


def test_a_relay_that_raises_is_a_missing_reply_and_its_text_stays_behind():
    def connect(context):
        if context.node_config["partition-id"] == 0:
            raise RuntimeError("private text")
        return Counter(1)

    seen = []
    grid = LocalGrid(relay(connect), 2, on_reply=lambda _, message: seen.append(message) or (message,))
    assert sorted(FlowerNetwork(grid, timeout=0.01).join(opening(), 2)) == [1]
    assert "private text" not in str([message.error.reason for message in seen if message.has_error()])


def test_a_repeated_request_reaches_the_party_twice():
    parties = [Counter(0)]
    net, _ = network(parties, on_request=lambda _, message: (message, message))
    assert sorted(net.join(opening(), 1)) == [0]
    assert parties[0].seen == 2
