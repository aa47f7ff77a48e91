"""A hospital's folder after some answered and refused requests: one answer is charged, and no process is running."""

import json

import pytest
import yaml

from client.approval.entries import Approvals
from client.audit_log import AuditLog
from client.command import main
from client.deploy.settings import HospitalSettings
from client.noted_head import NotedHead
from client.session import RefusalError
from common.messages import Reason
from server.deploy.authority import make_authority
from tests.support.federations import CANARY
from tests.support.ledgers import reservation

LIMITS = {"lifetime_epsilon": 10.0, "lifetime_delta": 1e-4}
TRUSTING = {"malicious_coordinator": False, "corrupt": 0.0}
"""Limits of a hospital that trusts the coordinator to follow the protocol."""


def operated(folder):
    """Make the folder, with one charge and four lines in the audit log."""
    for name in ("private", "node", "run"):
        (folder / name).mkdir(parents=True)
    make_authority(folder / "node")
    known = {"name": "A", "records": "notes.csv", "encoder": "hashed_ngrams", "coordinator": "localhost:1"}
    (folder / "client.yaml").touch(mode=0o600)
    (folder / "client.yaml").write_text(yaml.safe_dump({**known, "bundle": "ab" * 32, "limits": LIMITS}))
    charge(folder, 0)
    for request, reason in (("Open", "AWAITING"), ("Open", ""), ("Ask", "OVER_LIMIT"), ("Ask", "OVER_LIMIT")):
        note(folder, request, reason)
    return folder


def charge(folder, index):
    """Charge one more answer, as the party service does."""
    spend(folder, "r", index)


def spend(folder, run, index=0, **changes):
    """Charge an answer in this run, and note the ledger's new head."""
    noted = NotedHead(folder / "private" / "ledger.head")
    ledger = noted.opened(folder / "private" / "ledger.db")
    ledger.reserve(**reservation(run=run, index=index, **changes))
    noted.write(ledger)


def note(folder, request, reason=""):
    """Append another line to the audit log."""
    AuditLog(folder / "private").note(
        run="r", plan_digest=bytes(32), request=request, index=0, reason=reason, detail=reason and "the detail"
    )


def init_words(folder, *flags, records=None, name="St. Anne"):
    """Return the words of `init` for a new folder, over these records or those beside it, by the invitation there."""
    invitation = folder.parent / "invitation.json"
    named = ("--name", name, "--records", records or folder.parent / "notes.csv", "--invitation", invitation)
    return ["init", *map(str, (folder, *named, *flags))]


def change(folder, **values):
    """Change settings in client.yaml."""
    path = folder / "client.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | values))


def change_limits(folder, **values):
    """Change limits in client.yaml."""
    change(folder, limits=yaml.safe_load((folder / "client.yaml").read_text())["limits"] | values)


def said(capsys, *arguments, code=2):
    """Return the one line in which the command reports what is wrong."""
    assert main(list(map(str, arguments))) == code
    error = capsys.readouterr().err
    assert error.startswith("caucus-party: ")
    assert error.count("\n") == 1
    assert CANARY not in error
    return error


def opened(folder, agreed, run="pilot-1a2b3c4d", *, beyond=False):
    """Store a plan as the service does when it was opened: it waits, or the limits, which decide, have refused it."""

    def check():
        raise RefusalError(Reason.OVER_LIMIT, "a limit")

    settings = HospitalSettings.load(folder)
    settings.noted_head.opened(settings.ledger)  # which the service does first
    records = settings.records
    approvals = Approvals(folder / "private", records=records, key=b"k" * 32)
    with pytest.raises(RefusalError):
        approvals.admit(run, agreed, automatic=beyond, check=check)


def sent(folder, run, texts, name=32 * "0"):
    """Store the release of a run as the party service does; return the name of its file."""
    (releases := folder / "private" / "releases").mkdir(exist_ok=True)
    (releases / f"{name}.jsonl").write_bytes(texts)
    about = {"run": run, "received": "2026-01-02T10:00:00+00:00", "texts": 30}
    (releases / f"{name}.json").write_text(json.dumps(about))
    return name
