import pytest

from client.audit_log import AuditLog
from client.deploy.audit_totals import AuditReader, AuditTotals


@pytest.fixture
def log(tmp_path):
    return AuditLog(tmp_path)


def note(log, reason=""):
    log.note(run="r", plan_digest=bytes(32), request="Ask", index=0, reason=reason, detail=reason and "why")


def test_no_log_is_no_request(tmp_path):
    assert AuditReader(tmp_path / "audit.jsonl").totals() == AuditTotals()


def test_each_line_is_counted_once(log):
    reader = AuditReader(log.path)
    note(log)
    note(log, "OVER_LIMIT")
    note(log)
    for _ in range(2):
        totals = reader.totals()
        assert (totals.answered, totals.refused) == (2, {"OVER_LIMIT": 1})
    assert totals.last_refusal["detail"] == "why"
    assert totals.last_contact >= totals.last_refusal["when"]
    note(log, "FULL")
    log.note_decision(run="r", plan_digest="ab", by="anna", before="awaiting", after="refused")  # is no request
    assert reader.totals().refused == {"OVER_LIMIT": 1, "FULL": 1} == AuditReader(log.path).totals().refused


def test_a_log_that_was_moved_away_begins_anew(log, tmp_path):
    reader = AuditReader(log.path)
    note(log, "FULL")
    assert reader.totals().refused == {"FULL": 1}
    log.path.rename(tmp_path / "kept.jsonl")
    assert reader.totals() == AuditTotals()
    note(log)
    totals = reader.totals()
    assert (totals.answered, totals.refused, totals.last_refusal) == (1, {}, None)


def test_a_line_that_is_being_written_waits_and_a_damaged_one_is_left_out(log):
    reader = AuditReader(log.path)
    note(log)
    whole = log.path.read_bytes()
    log.path.write_bytes(whole + b"\0\0\n[1]\n" + whole[:20])
    assert reader.totals().answered == 1
    with log.path.open("ab") as file:
        file.write(whole[20:])
    assert reader.totals().answered == 2
