import json
import os

import pytest

from client import approvals as desks
from client.approvals import MOST_AWAITING, Desk, cases, decide
from client.service import LARGEST_PLAN, PartyService
from client.session import RefusalError
from common import messages as m
from common import wire
from common.errors import ConfigError
from tests.support.federations import CANARY, plan, query, service

PLAN = plan(3, secure=False, threshold=1)


@pytest.fixture
def records(tmp_path):
    path = tmp_path / "notes.csv"
    path.write_text("text,label\n")
    return path


def desk(tmp_path, records, approval="manual"):
    return Desk(tmp_path / "private", approval=approval, records=records, key=b"k" * 32)


def refused(reason, wanted, run="r", agreed=PLAN):
    with pytest.raises(RefusalError) as caught:
        wanted.admit(run, agreed)
    assert caught.value.reason is reason
    return str(caught.value)


def test_a_plan_waits_for_a_person_and_is_then_let_in_for_this_run_and_plan_alone(tmp_path, records):
    wanted = desk(tmp_path, records)
    assert "caucus-party approve" in refused(m.Reason.AWAITING, wanted)
    (case,) = cases(tmp_path / "private")
    assert (case.run, case.decision, case.by) == ("r", "awaiting", "")
    decided = decide(tmp_path / "private", case, approve=True, by="anna")
    wanted.admit("r", PLAN)
    wanted.admit("r", PLAN)
    refused(m.Reason.AWAITING, wanted, run="another")
    refused(m.Reason.AWAITING, wanted, agreed=plan(4, secure=False, threshold=1))
    with pytest.raises(ConfigError, match="expected one that awaits a decision; got approved by anna"):
        decide(tmp_path / "private", decided, approve=False, by="bob")


def test_a_refusal_stays(tmp_path, records):
    wanted = desk(tmp_path, records)
    refused(m.Reason.AWAITING, wanted)
    decide(tmp_path / "private", *cases(tmp_path / "private"), approve=False, by="anna")
    assert "refused by anna" in refused(m.Reason.OVER_LIMIT, wanted)
    assert "refused by anna" in refused(m.Reason.OVER_LIMIT, desk(tmp_path, records))


def test_the_limits_may_decide(tmp_path, records):
    desk(tmp_path, records, "auto").admit("r", PLAN)
    (case,) = cases(tmp_path / "private")
    assert (case.decision, case.by) == ("approved", "limits")
    with pytest.raises(ConfigError, match="approval"):
        desk(tmp_path, records, "always")


def test_a_coordinator_cannot_fill_the_disk_with_plans(tmp_path, records):
    wanted = desk(tmp_path, records)
    for number in range(MOST_AWAITING + 5):
        refused(m.Reason.AWAITING, wanted, run=str(number))
    assert sum(1 for _ in cases(tmp_path / "private")) == MOST_AWAITING


def test_nor_with_plans_that_the_limits_let_in(tmp_path, records, monkeypatch):
    monkeypatch.setattr(desks, "MOST_CASES", 3)
    wanted = desk(tmp_path, records, "auto")
    for number in range(3):
        wanted.admit(str(number), PLAN)
    said = refused(m.Reason.INTERNAL, wanted, run="one more")
    assert f"expected below 3: move old files out of {tmp_path / 'private' / 'runs'}" in said
    wanted.admit("0", PLAN)  # what is under way goes on
    next((tmp_path / "private" / "runs").glob("*.json")).unlink()
    wanted.admit("one more", PLAN)


def test_a_run_keeps_to_the_records_it_began_with(tmp_path, records):
    wanted = desk(tmp_path, records, "auto")
    wanted.admit("r", PLAN)
    before = records.read_bytes()
    records.write_text(f"text,label\n{CANARY},a\n")
    with pytest.raises(RefusalError, match="as it was when this service started") as caught:
        wanted.unchanged()
    assert caught.value.reason is m.Reason.INTERNAL
    restarted = desk(tmp_path, records, "auto")
    assert "the one that this run began with" in refused(m.Reason.INTERNAL, restarted)
    restarted.admit("a new run", PLAN)
    records.write_bytes(before)
    desk(tmp_path, records, "auto").admit("r", PLAN)
    records.unlink()
    with pytest.raises(RefusalError):
        wanted.unchanged()


class Open:
    """One Open of a party with a desk."""

    def __init__(self, tmp_path, records):
        self.desk = desk(tmp_path, records, "auto")
        made = service(tmp_path, 0)
        made._desk = self.desk
        self.party: PartyService = made
        self.log = tmp_path / "private" / "audit.jsonl"

    def send(self, body, **place):
        parcel = wire.pack(m.Envelope(run="r", party=0, plan_digest=PLAN.digest(), body=body, **place))
        return wire.unpack(self.party.handle(parcel)).body

    def lines(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()]


def test_the_audit_log_has_a_line_for_each_request_and_no_text(tmp_path, records):
    opened = Open(tmp_path, records)
    assert isinstance(opened.send(m.Open(PLAN.to_json())), m.Opened)
    assert isinstance(opened.send(m.AskUnmask(frozenset({0}))), m.Refusal)
    assert isinstance(opened.send(m.Close()), m.Closed)
    assert [(line["request"], line["decision"], line["reason"]) for line in opened.lines()] == [
        ("Open", "answered", ""), ("AskUnmask", "refused", "OUT_OF_ORDER"), ("Close", "answered", "")
    ]  # fmt: skip
    assert all(line["plan"] == PLAN.digest().hex() and line["run"] == "r" for line in opened.lines())
    assert CANARY not in opened.log.read_text()
    assert opened.log.stat().st_mode & 0o077 == 0


def test_what_cannot_be_logged_does_not_leave(tmp_path, records, monkeypatch, caplog):
    opened = Open(tmp_path, records)

    def full(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(opened.desk, "note", full)
    assert opened.send(m.Open(PLAN.to_json())) == m.Refusal(m.Reason.INTERNAL)
    assert "the audit log cannot be written: No space left on device" in caplog.text


def test_a_full_audit_log_stops_all_until_a_person_has_moved_it_away(tmp_path, records, monkeypatch, caplog):
    opened = Open(tmp_path, records)
    assert isinstance(opened.send(m.Open(PLAN.to_json())), m.Opened)
    monkeypatch.setattr(desks, "LARGEST_AUDIT", opened.log.stat().st_size)
    held = opened.log.read_bytes()
    for body in (m.Ask(query()), m.Close(), m.Open(PLAN.to_json())):
        assert opened.send(body) == m.Refusal(m.Reason.INTERNAL)
    assert opened.party.handle(m.Parcel(b"garbage"))
    assert opened.log.read_bytes() == held
    assert not opened.party._ledger.entries()  # what could not be noted is not charged
    assert f"move {opened.log} away and keep it" in caplog.text
    opened.log.rename(tmp_path / "kept.jsonl")
    assert isinstance(opened.send(m.Ask(query())), m.Answer)
    assert [line["request"] for line in opened.lines()] == ["Ask"]


def test_no_line_of_the_audit_log_is_long(tmp_path, records):
    wanted = desk(tmp_path, records)
    wanted.note(run="r", plan_digest=bytes(32), request="Open", index=0, reason="MALFORMED", detail="x" * 2**20)
    assert wanted.audit.stat().st_size < 2 * desks.LONGEST_DETAIL


def test_a_huge_plan_is_not_kept(tmp_path, records):
    opened = Open(tmp_path, records)
    assert opened.send(m.Open(PLAN.to_json() + b" " * LARGEST_PLAN)) == m.Refusal(m.Reason.MALFORMED)
    assert not list(cases(tmp_path / "private"))


def test_a_line_of_the_audit_log_that_a_full_disk_cuts_leaves_nothing_behind(tmp_path, records, monkeypatch):
    wanted = desk(tmp_path, records)
    write = os.write

    def note(run):
        wanted.note(run=run, plan_digest=bytes(32), request="Ask", index=0)

    note("first")
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda file, data: write(file, data[:20]))
        with pytest.raises(OSError, match="No space left"):
            note("cut")
    note("next")
    lines = (tmp_path / "private" / "audit.jsonl").read_text().splitlines()
    assert [json.loads(line)["run"] for line in lines] == ["first", "next"]
