import pytest

from client.audit_log import AuditLog
from client.deploy import audit_reading
from client.deploy.audit_reading import AuditTotals, audit_totals


@pytest.fixture
def log(tmp_path):
    return AuditLog(tmp_path)


def note(log, reason=""):
    log.note(run="r", plan_digest=bytes(32), request="Ask", index=0, reason=reason, detail=reason and "why")


def test_totals_of_no_log_are_zero(tmp_path):
    assert audit_totals(tmp_path / "audit.jsonl") == AuditTotals()


def test_totals_of_a_growing_log_count_each_request_once(log):
    note(log)
    note(log, "OVER_LIMIT")
    note(log)
    totals = audit_totals(log.path)
    assert (totals.answered, totals.refused) == (2, {"OVER_LIMIT": 1})
    assert totals.last_refusal["detail"] == "why"
    assert totals.last_contact >= totals.last_refusal["when"]
    note(log, "FULL")
    log.note_decision(run="r", plan_digest="ab", by="anna", before="awaiting", after="refused")  # is no request
    assert audit_totals(log.path).refused == {"OVER_LIMIT": 1, "FULL": 1}


def test_totals_of_a_log_that_was_moved_away_start_at_zero(log, tmp_path):
    note(log, "FULL")
    assert audit_totals(log.path).refused == {"FULL": 1}
    log.path.rename(tmp_path / "kept.jsonl")
    assert audit_totals(log.path) == AuditTotals()
    note(log)
    totals = audit_totals(log.path)
    assert (totals.answered, totals.refused, totals.last_refusal) == (1, {}, None)


def test_totals_of_a_damaged_log_leave_out_damaged_and_unfinished_lines(log):
    note(log)
    whole = log.path.read_bytes()
    log.path.write_bytes(whole + b"\0\0\n[1]\n" + whole[:20])
    assert audit_totals(log.path).answered == 1
    log.path.write_bytes(whole + whole)
    assert audit_totals(log.path).answered == 2


def test_a_line_of_a_growing_log_is_read_once(log, monkeypatch):
    note(log)
    audit_totals(log.path)
    read, lines = audit_reading._request, []
    monkeypatch.setattr(audit_reading, "_request", lambda entry: lines.append(entry) or read(entry))
    note(log)
    assert audit_totals(log.path).answered == 2
    assert len(lines) == 1
