"""Requests to a party's service, in the form of the coordinator's messages."""

from contextlib import contextmanager

from client.approval.entries import Approvals
from client.audit_log import AuditLog
from client.channel import serve_socket
from client.releases import Releases
from common import messages as m
from common import wire
from common.ledger.ledger import Ledger
from tests.support.federations import plan, service

PLAIN = plan(3, secure=False, threshold=1)
"""Plan of three parties without masks."""


def send(query, body, *, agreed=PLAIN, **place):
    """Return the service's reply to the message."""
    settings = {"run": "run", "party": 0, "plan_digest": agreed.digest()} | place
    return wire.unpack(query.handle(wire.pack(m.Envelope(body=body, **settings)))).body


def opened(folder, agreed=PLAIN, **changes):
    """Return party 0's service after it has opened a run of the plan."""
    party = service(folder, 0, **changes)
    assert isinstance(send(party, m.Open(agreed.to_json()), agreed=agreed), m.Opened)
    return party


def hospital(folder, party=0, **changes):
    """Return the service of a party with a hospital's folder `private`, where the limits decide on plans."""
    folder.mkdir(exist_ok=True)
    (notes := folder / "notes.csv").write_text("text,label\n")
    private, ledger = folder / "private", Ledger(folder / "ledger.db")
    kept = {
        "ledger": ledger,
        "approvals": Approvals(private, records=notes, key=b"k" * 32),
        "audit_log": AuditLog(private),
        "releases": Releases(private, ledger),
    }
    return service(folder, party, **kept | changes)


@contextmanager
def on_socket(parties, address):
    """Serve the parties, which are keyed by number, at this address as long as the context lasts."""
    server = serve_socket(parties, address)
    try:
        yield
    finally:
        server.stop(None).wait()
