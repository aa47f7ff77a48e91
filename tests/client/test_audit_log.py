import json
import os
from unittest.mock import Mock

import pytest

from client import audit_log as module
from client.audit_log import AuditLog
from common import messages as m
from tests.support.federations import CANARY, query
from tests.support.party_requests import PLAIN, hospital, send


def lines(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_the_audit_log_has_a_line_for_each_request_and_no_text(tmp_path):
    opened, log = hospital(tmp_path), tmp_path / "private" / "audit.jsonl"
    assert isinstance(send(opened, m.Open(PLAIN.to_json())), m.Opened)
    assert isinstance(send(opened, m.AskUnmask(frozenset({0}))), m.Refusal)
    assert isinstance(send(opened, m.Close()), m.Closed)
    decided, *requests = lines(log)
    assert (decided["by"], decided["from"], decided["to"]) == ("limits", "awaiting", "approved")
    assert [(line["request"], line["decision"], line["reason"]) for line in requests] == [
        ("Open", "answered", ""),
        ("AskUnmask", "refused", "OUT_OF_ORDER"),
        ("Close", "answered", ""),
    ]
    assert all(line["plan"] == PLAIN.digest().hex() and line["run"] == "run" for line in lines(log))
    assert CANARY not in log.read_text()
    assert log.stat().st_mode & 0o077 == 0


def test_log_audit_and_charges_of_a_hospital_without_a_record_are_those_of_any_other(tmp_path, caplog):
    caplog.set_level("DEBUG", "caucus")

    def seen(name, **records):
        caplog.clear()
        party = hospital(tmp_path / name, **records)
        replies = [type(send(party, body)) for body in (m.Open(PLAIN.to_json()), m.Ask(query()), m.Close())]
        assert replies == [m.Opened, m.Answer, m.Closed]
        audit = [line | {"when": ""} for line in lines(tmp_path / name / "private" / "audit.jsonl")]
        return audit, caplog.messages, party._ledger.releases()

    assert seen("empty", private=[]) == seen("usual")


def test_what_cannot_be_logged_does_not_leave(tmp_path, monkeypatch, caplog):
    opened = hospital(tmp_path)
    monkeypatch.setattr(opened._audit_log, "note", Mock(side_effect=OSError(28, "No space left on device")))
    assert send(opened, m.Open(PLAIN.to_json())) == m.Refusal(m.Reason.INTERNAL)
    assert "No space" in caplog.text


def test_a_full_audit_log_stops_all_until_a_person_has_moved_it_away(tmp_path, monkeypatch, caplog):
    opened, log = hospital(tmp_path), tmp_path / "private" / "audit.jsonl"
    assert isinstance(send(opened, m.Open(PLAIN.to_json())), m.Opened)
    monkeypatch.setattr(module, "LARGEST_AUDIT", log.stat().st_size)
    content = log.read_bytes()
    for body in (m.Ask(query()), m.Close(), m.Open(PLAIN.to_json())):
        assert send(opened, body) == m.Refusal(m.Reason.FULL)
    assert opened.handle(m.Parcel(b"garbage"))
    assert log.read_bytes() == content
    assert not opened._ledger.entries()  # what could not be noted is not charged
    assert f"Move {log} away" in caplog.text
    log.rename(tmp_path / "kept.jsonl")
    assert isinstance(send(opened, m.Ask(query())), m.Answer)
    assert [line["request"] for line in lines(log)] == ["Ask"]


def test_a_log_that_root_begins_belongs_to_the_service(tmp_path, monkeypatch):
    owners = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "fchown", lambda _, *owner: owners.append(owner))
    AuditLog(tmp_path).note(run="r", plan_digest=bytes(32), request="Open", index=0)
    assert owners == [(tmp_path.stat().st_uid, tmp_path.stat().st_gid)]


def test_no_line_of_the_audit_log_is_long(tmp_path):
    wanted = AuditLog(tmp_path)
    wanted.note(run="r", plan_digest=bytes(32), request="Open", index=0, reason="MALFORMED", detail="x" * 2**20)
    assert wanted.path.stat().st_size < 2 * module.LONGEST_DETAIL


def test_a_torn_last_line_swallows_no_other(tmp_path):
    wanted = AuditLog(tmp_path)
    wanted.note(run="first", plan_digest=bytes(32), request="Ask", index=0)
    whole = wanted.path.read_bytes()
    for size in range(1, len(whole) + 1):
        wanted.path.write_bytes(whole + whole[:size])
        wanted.note_decision(run="r", plan_digest="00", by="a", before="approved", after="refused")
        lines = wanted.path.read_bytes().splitlines()
        assert json.loads(lines[-1])["to"] == "refused"
        assert lines[1:-1] == [whole[:size].rstrip(b"\n")]


def test_a_line_of_the_audit_log_that_a_full_disk_cuts_leaves_nothing_behind(tmp_path, monkeypatch):
    wanted = AuditLog(tmp_path)
    write = os.write

    def note(run):
        wanted.note(run=run, plan_digest=bytes(32), request="Ask", index=0)

    note("first")
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda file, data: write(file, data[:20]))
        with pytest.raises(OSError, match="No space"):
            note("cut")
    note("next")
    lines = wanted.path.read_text().splitlines()
    assert [json.loads(line)["run"] for line in lines] == ["first", "next"]
