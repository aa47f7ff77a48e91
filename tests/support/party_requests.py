"""Requests to a party's service, as the coordinator's messages bring them."""

from common import messages as m
from common import wire
from tests.support.federations import plan, service

PLAIN = plan(3, secure=False, threshold=1)
"""Three parties without masks."""


def send(query, body, *, agreed=PLAIN, **place):
    """The service's reply to the message."""
    settings = {"run": "run", "party": 0, "plan_digest": agreed.digest()} | place
    return wire.unpack(query.handle(wire.pack(m.Envelope(body=body, **settings)))).body


def opened(folder, agreed=PLAIN, **changes):
    """Party 0's service, which has opened a run of the plan."""
    party = service(folder, 0, **changes)
    assert isinstance(send(party, m.Open(agreed.to_json()), agreed=agreed), m.Opened)
    return party
