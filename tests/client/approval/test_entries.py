import itertools
import json
import os
import pwd
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from client import audit_log
from client.approval import entries as module
from client.approval.entries import MOST_AWAITING, Approvals, approvals, awaiting_entries, decide, end_all, path_of
from client.approval.standing import end_of_run
from client.audit_log import LIMITS, account
from client.session import RefusalError
from common import messages as m
from common.errors import ConfigError, DataError
from common.system.locks import alone
from common.system.log_lines import utc
from tests.support.federations import CANARY, plan
from tests.support.sheets import SAY

PLAN = plan(3, secure=False, threshold=1)


@pytest.fixture
def records(tmp_path):
    path = tmp_path / "notes.csv"
    path.write_text("text,label\n")
    return path


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "private"


def made(folder, records):
    """Return the approvals of a service that starts now."""
    return Approvals(folder, records=records, key=b"k" * 32)


@pytest.fixture
def wanted(folder, records):
    """The approvals of a service that runs."""
    return made(folder, records)


@pytest.fixture
def waiting(folder, wanted):
    """The entry of the only plan, which waits for a person."""
    refused(m.Reason.AWAITING, wanted)
    (entry,) = approvals(folder)
    return entry


def test_an_entry_of_another_run_or_plan_decides_nothing(folder, wanted):
    others = plan(4, secure=False, threshold=1)
    wanted.admit("r", PLAN, automatic=True)
    (entry,) = approvals(folder)
    for run, agreed in (("s", PLAN), ("r", others)):
        path = path_of(folder, run, agreed.digest().hex())
        path.write_bytes(path_of(folder, entry.run, entry.plan_digest).read_bytes())
        with pytest.raises(DataError, match="run's entry; expected that of this run and plan; got another"):
            wanted.admit(run, agreed, automatic=True)


def refused(reason, wanted, run="r", agreed=PLAN, *, automatic=False, check=lambda: None):
    with pytest.raises(RefusalError) as caught:
        wanted.admit(run, agreed, automatic=automatic, check=check)
    assert caught.value.reason is reason
    return str(caught.value)


def test_a_plan_waits_for_a_person_and_is_then_let_in_for_this_run_and_plan_alone(folder, wanted):
    assert "caucus-party approve" in refused(m.Reason.AWAITING, wanted)
    (approval,) = approvals(folder)
    assert (approval.run, approval.decision, approval.by) == ("r", "awaiting", "")
    decide(folder, approval, approve=True, by="anna")
    wanted.admit("r", PLAN, automatic=False)
    wanted.admit("r", PLAN, automatic=False)
    refused(m.Reason.AWAITING, wanted, run="another")
    refused(m.Reason.AWAITING, wanted, agreed=plan(4, secure=False, threshold=1))


def test_a_decision_that_cannot_be_stored_is_not_in_the_audit_log_either(folder, waiting, monkeypatch):
    full = Mock(side_effect=OSError(28, "No space left on device"))
    for place, name in ((os, "fsync"), (audit_log.AuditLog, "note_decision")):
        with monkeypatch.context() as disk:
            disk.setattr(place, name, full)
            with pytest.raises(OSError, match="No space left"):
                decide(folder, waiting, approve=False, by="anna")
        assert approvals(folder) == [waiting]
        assert not (folder / "audit.jsonl").exists()
        assert [path.suffix for path in (folder / "runs").iterdir()] == [".json"]


@pytest.mark.parametrize("automatic", [False, True])
def test_a_persons_refusal_stays_until_it_is_reconsidered(automatic, folder, records, wanted, waiting):
    declined = decide(folder, waiting, approve=False, by="anna")
    for service in (wanted, made(folder, records)):
        assert "refused by anna" in refused(m.Reason.DECLINED, service, automatic=automatic)
    decide(folder, declined, approve=True, by="bob")
    wanted.admit("r", PLAN, automatic=automatic)
    decide(folder, *approvals(folder), approve=False, by="anna")
    assert "refused by anna" in refused(m.Reason.DECLINED, wanted, automatic=automatic)


def decisions(folder):
    """What the audit log says of decisions."""
    lines = map(json.loads, (folder / "audit.jsonl").read_text().splitlines())
    return [(line["by"], line["from"], line["to"], line["reason"]) for line in lines]


def test_every_decision_leaves_a_line_that_no_later_one_removes(folder, wanted, waiting):
    declined = decide(folder, waiting, approve=False, by="anna", reason="no purpose")
    assert (declined.reason, approvals(folder)) == ("no purpose", [declined])
    approved = decide(folder, declined, approve=True, by="bob")
    assert (approved.reason, approved.by) == ("", "bob")
    wanted.admit("other", PLAN, automatic=True)
    wanted.admit("other", PLAN, automatic=True)  # nothing is decided again
    refused(m.Reason.AWAITING, wanted, run="other")
    assert [(entry.run, entry.by) for entry in awaiting_entries(folder)] == [("other", "")]
    assert decisions(folder) == [
        ("anna", "awaiting", "refused", "no purpose"),
        ("bob", "refused", "approved", ""),
        ("limits", "awaiting", "approved", ""),
        ("limits", "approved", "awaiting", ""),
    ]
    first = json.loads((folder / "audit.jsonl").read_text().splitlines()[0])
    assert (first["when"], first["run"], first["plan"]) == (declined.decided, "r", PLAN.digest().hex())
    assert first["when"].endswith("+00:00")


def test_what_cannot_be_noted_is_not_decided(folder, waiting, monkeypatch):
    with pytest.raises(ConfigError, match="reason; expected 1 to 200 printable characters"):
        decide(folder, waiting, approve=False, by="anna", reason="no\x1b[2J")
    monkeypatch.setattr(audit_log, "LARGEST_AUDIT", 0)
    (folder / "audit.jsonl").touch()
    with pytest.raises(RefusalError, match=r"audit log; expected below 0 bytes; got .*\. Move"):
        decide(folder, waiting, approve=True, by="anna")
    assert approvals(folder) == [waiting]


def test_a_decision_keeps_what_the_service_wrote_since_it_was_shown(folder, wanted, waiting):
    wanted.admit("r", PLAN, automatic=True)
    approved = decide(folder, waiting, approve=True, by="anna")
    assert approved.data == wanted.digest()
    assert decide(folder, approved, approve=False, by="anna").data == wanted.digest()


def test_of_two_people_who_look_at_one_plan_the_first_decides(folder, waiting):
    declined = decide(folder, waiting, approve=False, by="anna")
    with pytest.raises(ConfigError, match="plan; expected awaiting, as it was shown; got refused by anna"):
        decide(folder, waiting, approve=True, by="bob")
    assert approvals(folder) == [declined]
    assert decisions(folder) == [("anna", "awaiting", "refused", "")]


def test_a_decision_waits_while_the_service_writes(folder, waiting):
    with ThreadPoolExecutor(1) as person:
        with alone(folder / "runs"):
            deciding = person.submit(decide, folder, waiting, approve=False, by="anna")
            with pytest.raises(TimeoutError):
                deciding.result(timeout=0.05)
            assert approvals(folder) == [waiting]
        assert deciding.result().decision == "refused"


def test_disk_is_not_filled_with_plans_and_only_an_ended_one_that_nobody_decided_about_makes_room(
    folder, wanted, monkeypatch
):
    times = itertools.count()
    monkeypatch.setattr(module, "now", lambda: f"{next(times):04}")
    refused(m.Reason.AWAITING, wanted, run="declined")
    decide(folder, *approvals(folder), approve=False, by="anna")
    for number in range(MOST_AWAITING + 5):
        refused(m.Reason.AWAITING, wanted, run=str(number))
        wanted.note_end(str(number))
    kept = {entry.run for entry in approvals(folder)}
    assert kept == {"declined", *map(str, range(5, MOST_AWAITING + 5))}
    for number in range(5, MOST_AWAITING + 5):
        refused(m.Reason.AWAITING, wanted, run=str(number))  # opened again, none of them is over
    assert len(awaiting_entries(folder)) == MOST_AWAITING
    refused(m.Reason.FULL, wanted, run="one more")


def test_disk_is_not_filled_with_plans_that_the_limits_let_in(folder, wanted, monkeypatch):
    monkeypatch.setattr(module, "MOST_APPROVALS", 3)
    for number in range(3):
        wanted.admit(str(number), PLAN, automatic=True)
    message = refused(m.Reason.FULL, wanted, run="one more", automatic=True)
    assert f"3 runs are kept, and no more can be. Move old files out of {folder / 'runs'}" in message
    wanted.admit("0", PLAN, automatic=True)  # what is under way goes on
    next((folder / "runs").glob("*.json")).unlink()
    wanted.admit("one more", PLAN, automatic=True)


def test_a_run_keeps_to_the_records_it_began_with(folder, records, wanted):
    wanted.admit("r", PLAN, automatic=True)
    before = records.read_bytes()
    records.write_text(f"text,label\n{CANARY},a\n")
    assert "has changed since this service started" in refused(m.Reason.RECORDS, wanted, automatic=True)
    restarted = made(folder, records)
    assert "Restore the one that this run began with" in refused(m.Reason.RECORDS, restarted, automatic=True)
    restarted.admit("a new run", PLAN, automatic=True)
    records.write_bytes(before)
    made(folder, records).admit("r", PLAN, automatic=True)
    records.unlink()
    refused(m.Reason.RECORDS, wanted, automatic=True)


def test_a_stored_plan_that_is_not_that_of_its_digest_cannot_be_read(waiting):
    assert waiting.read_plan() == PLAN
    other = plan(3, secure=False, threshold=1, epsilon=PLAN.epsilon / 2).to_json().decode()
    for stored in (other, "{}", "{"):
        assert replace(waiting, plan=stored).read_plan() is None


def test_who_decides_is_the_account_and_not_what_its_environment_says(monkeypatch):
    monkeypatch.setenv("LOGNAME", "somebody else")
    assert account().split()[0] == pwd.getpwuid(os.geteuid()).pw_name
    for gecos, shown in (("Anna Meier,Room 3,,", "anna (Anna Meier)"), ("anna", "anna"), ("\x1b,", "anna (?)")):
        entry = SimpleNamespace(pw_name="anna", pw_gecos=gecos)
        with monkeypatch.context() as patched:
            patched.setattr("pwd.getpwuid", lambda _, entry=entry: entry)
            assert account() == shown
    monkeypatch.setattr("os.geteuid", lambda: 123_456_789)
    assert account() == "user 123456789"


def test_a_person_whose_account_has_the_name_of_the_limits_decides_as_a_person(folder, wanted, waiting, monkeypatch):
    monkeypatch.setattr("pwd.getpwuid", lambda _: SimpleNamespace(pw_name=LIMITS, pw_gecos=""))
    decide(folder, waiting, approve=False, by=account())
    refused(m.Reason.DECLINED, wanted, automatic=True)


def beyond():
    raise RefusalError(m.Reason.OVER_LIMIT, "epsilon")


def never():
    raise AssertionError("before a decision nothing is checked, so that no time tells of it")


def test_a_plan_beyond_the_limits_waits_as_any_other_and_is_refused_by_them_once_it_is_approved(folder, wanted):
    refused(m.Reason.AWAITING, wanted, check=never)
    (entry,) = awaiting_entries(folder)
    decide(folder, entry, approve=True, by="anna")
    refused(m.Reason.OVER_LIMIT, wanted, check=beyond)
    wanted.admit("r", PLAN, automatic=False)
    decide(folder, *approvals(folder), approve=False, by="anna")
    refused(m.Reason.DECLINED, wanted, check=never)


def test_where_the_limits_decide_a_plan_beyond_them_is_kept_as_one_that_they_refuse(folder, wanted, monkeypatch):
    monkeypatch.setattr(module, "MOST_BEYOND", 1)
    limited = {"check": beyond, "automatic": True}
    for run in ("r", "r2", "r"):  # the audit log alone names the second
        refused(m.Reason.OVER_LIMIT, wanted, run=run, **limited)
    (kept,) = approvals(folder)
    assert (kept.run, kept.decision, kept.by, awaiting_entries(folder)) == ("r", "refused", LIMITS, [])
    assert decisions(folder) == [(LIMITS, "awaiting", "refused", "")]
    refused(m.Reason.AWAITING, wanted)  # once a person decides
    assert awaiting_entries(folder)
    wanted.admit("r", PLAN, automatic=True)
    refused(m.Reason.OVER_LIMIT, wanted, **limited)
    assert [entry.decision for entry in approvals(folder)] == ["approved"]  # it began within them


def test_a_run_that_was_refused_for_its_records_is_bound_to_no_file(folder, records, wanted):
    records.write_text(f"text,label\n{CANARY},a\n")
    refused(m.Reason.AWAITING, wanted)
    refused(m.Reason.RECORDS, wanted, automatic=True)
    made(folder, records).admit("r", PLAN, automatic=True)


def test_a_run_that_ended_or_is_not_asked_for_any_more_says_so(folder, wanted, waiting):
    assert not waiting.may_be_over
    wanted.note_end("r")
    (over,) = approvals(folder)
    assert (over.may_be_over, over.over) == (True, over.ended)
    assert list(end_of_run(over)) == [SAY.over.ended.format(utc(over.ended)), SAY.over.no_harm]
    assert list(end_of_run(replace(over, decision="refused")))[1:] == [SAY.over.holds]
    assert awaiting_entries(folder) == []
    refused(m.Reason.AWAITING, wanted)
    (again,) = awaiting_entries(folder)
    late = replace(again, asked="", first_seen="2026-01-01T00:00:00+00:00")
    assert late.may_be_over
    assert list(end_of_run(late)) == [SAY.over.quiet.format("2026-01-01 00:00:00"), SAY.over.no_harm]
    assert list(end_of_run(replace(late, decision="approved"))) == []


def test_a_plan_still_waits_when_another_run_has_begun_since(folder, wanted, waiting):
    earlier = replace(waiting, asked=(datetime.now(UTC) - timedelta(hours=5)).isoformat())
    path_of(folder, waiting.run, waiting.plan_digest).write_text(json.dumps(asdict(earlier)))
    refused(m.Reason.AWAITING, wanted, run="another")
    assert [entry.may_be_over for entry in awaiting_entries(folder)] == [False, False]


def test_a_run_does_not_go_on_with_or_without_labels_when_it_began_the_other_way(folder, records, wanted):
    wanted.admit("r", PLAN, automatic=True)
    without = Approvals(folder, records=records, key=b"k" * 32, labelled=False)
    refused(m.Reason.RECORDS, without, automatic=True)
    without.admit("a new run", PLAN, automatic=True)


def test_a_run_that_the_hospital_has_ended_is_over_for_good(folder, wanted, monkeypatch):
    times = itertools.count()
    monkeypatch.setattr(module, "now", lambda: f"2026-01-01T00:00:{next(times):02}+00:00")
    end_all(folder.parent / "elsewhere")  # a service that never started has nothing to end
    for number in range(MOST_AWAITING):
        refused(m.Reason.AWAITING, wanted, run=str(number))
    end_all(folder)
    over = approvals(folder)
    end_all(folder)
    assert approvals(folder) == over  # the time stays
    assert awaiting_entries(folder) == []
    for entry in over:
        assert list(end_of_run(entry)) == [SAY.over.closed.format(utc(entry.closed))]
        for approve in (True, False):
            with pytest.raises(ConfigError, match="one that ended for good"):
                decide(folder, entry, approve=approve, by="anna")
    refused(m.Reason.AWAITING, wanted, run="one more")  # for which the oldest made room
    assert {entry.run for entry in over} - {entry.run for entry in approvals(folder)} == {"0"}
