"""Delivery of a run's texts to the parties that answered it; `client/releases.py` is the parties' side.

Each party decides for itself whether to accept the texts. The coordinator learns these decisions, and which nodes are
connected. The texts go only to the nodes of the parties that answered the run.
"""

from collections.abc import Set as AbstractSet

from common import messages as m
from common import wire
from common.domain import PartyId
from common.errors import ProtocolError
from server.federation.absence import SILENT
from server.federation.network import FlowerNetwork

OFFLINE = "is offline"


def send(
    network: FlowerNetwork, texts: bytes, parties: AbstractSet[PartyId], *, run: str, plan_digest: bytes
) -> dict[PartyId, str]:
    """Send the content of the run's `synthetic.jsonl` to each of these parties that is connected.

    Returns:
        A clause for each party that states why the party does not have the texts; empty if it has them.
    """
    body = m.Release(texts)
    envelopes = {
        party: m.Envelope(run=run, party=party, plan_digest=plan_digest, body=body)
        for party in sorted(parties & network.online())
    }
    replies = network.exchange(wire.pack_all(envelopes)) if envelopes else {}
    problems = dict.fromkeys(sorted(parties), OFFLINE)
    for party, sent in envelopes.items():
        problems[party] = _problem(sent, replies[party]) if party in replies else str(SILENT.words)
    return problems


def _problem(sent: m.Envelope, parcel: m.Parcel) -> str:
    try:
        reply = wire.unpack(parcel)
    except ProtocolError:
        return "sent a reply that cannot be read"
    match reply.body:
        case m.Refusal(reason):
            return m.refused_for(reason)
        case m.Received() if (reply.run, reply.party, reply.plan_digest) == (sent.run, sent.party, sent.plan_digest):
            return ""
        case _:
            return "sent a reply that is out of place"
