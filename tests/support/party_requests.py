"""Requests to a party's service, in the form of the coordinator's messages."""

from common import messages as m
from common import wire
from tests.support.federations import plan, service

PLAIN = plan(3, secure=False, threshold=1)
"""Agreement of three parties without masks."""


def send(query, body, *, agreed=PLAIN, **place):
    """Return the service's reply to the message."""
    settings = {"run": "run", "party": 0, "plan_digest": agreed.digest()} | place
    return wire.unpack(query.handle(wire.pack(m.Envelope(body=body, **settings)))).body


def opened(folder, agreed=PLAIN, **changes):
    """Return party 0's service, which has opened a run of the plan."""
    party = service(folder, 0, **changes)
    assert isinstance(send(party, m.Open(agreed.to_json()), agreed=agreed), m.Opened)
    return party
