"""What runs now, on the page: processes, the last requests and decisions with their reasons, logs, the coordinator."""

from typing import get_args

import pytest

from client.audit_log import AuditLog
from client.deploy import audit_reading
from client.page.app import LOGS, MOST_LINES, PAGES
from common import messages
from common.messages import Reason
from common.system import processes
from tests.support.browsing import Browser
from tests.support.federations import CANARY
from tests.support.hospital import note


def text_of(folder, path="now"):
    response = Browser.entered(folder).get(path)
    assert response.status_code == 200
    return response.text


def test_each_reason_message_process_and_result_has_a_word():
    say = vars(PAGES.say.now)
    assert {reason.name for reason in Reason} == set(vars(say["reasons"]))
    requests = {request.__name__ for request in get_args(messages.Request)}
    assert set(vars(say["messages"])) == requests | {"unreadable"}
    assert set(vars(say["parts"])) == set(LOGS)


def test_a_new_hospital_is_told_how_to_start(made):
    text = text_of(made)
    for sentence in ("nothing", "requests_none", "logs_none"):
        assert getattr(PAGES.say.now, sentence) in text
    assert "caucus-party start" in text


def test_requests_and_refusals_are_told_in_words(hospital):
    AuditLog(hospital / "private").note_decision(
        run="r", plan_digest="00", by="anna", before="awaiting", after="refused", reason="no purpose"
    )
    text = text_of(hospital)
    assert "this hospital&#39;s limits, or it has closed the run or the query" in text
    assert "the detail" in text
    assert "anna: awaiting → refused: no purpose" in text
    assert "1 requests answered, 2 refused, 1 found a plan that waited" in text
    assert text.count(f"<strong>{PAGES.say.now.was_refused}</strong>") == 2  # a plan that waits is not refused


def test_the_last_lines_alone_are_shown_and_damaged_ones_left_out(hospital, monkeypatch):
    for number in range(MOST_LINES):
        note(hospital, "Ask" if number else "Something new", "LATER" if number == 1 else "")
    log = hospital / "private" / "audit.jsonl"
    with log.open("a") as file:
        file.write('{"when": "x"}\n{"torn')
    text = text_of(hospital)
    assert text.count('<tr><th scope="row" class="whole">') == MOST_LINES
    assert "Something new" in text
    assert "LATER" in text
    monkeypatch.setattr(audit_reading, "_TAIL", 400)
    (last, *more) = audit_reading.last_of_audit(hospital / "private")
    assert (last.request, len(more) < 3) == ("Ask", True)


@pytest.mark.parametrize("connected", [True, False])
def test_the_connection_is_told_with_its_time_or_its_reason(hospital, monkeypatch, connected):
    (hospital / "logs").mkdir()
    (hospital / "logs" / "supernode.log").write_text(
        "Connection attempt failed\nConnection successful after 2 tries.\n"
    )
    noted = {"process": 7, "connected": connected, "since": "2026-01-02T10:00:00+00:00"}
    children = {"supernode": {"process": 7, "restarts": 0, "noted": noted}}
    monkeypatch.setattr(processes, "status", lambda *_: {"children": children})
    text = text_of(hospital)
    assert (PAGES.say.now.connected.format("2026-01-02 10:00:00") in text) is connected
    assert ("not connected since 2026-01-02 10:00:00 UTC: Connection attempt failed" in text) is not connected


def test_what_runs_and_what_waits_to_start_again(hospital, monkeypatch):
    children = {"service": {"process": 7, "restarts": 2}, "relay": {"process": None, "restarts": 3}}
    monkeypatch.setattr(processes, "status", lambda *_: {"children": children})
    text = text_of(hospital)
    assert PAGES.say.now.runs.format(2) in text
    assert PAGES.say.now.waits.format(3) in text
    assert PAGES.say.now.missing in text
    assert PAGES.say.now.nothing not in text


def test_a_ledger_that_the_service_refuses_and_a_certificate_that_ends_are_warned_of(hospital, monkeypatch):
    (hospital / "private" / "ledger.head").unlink()
    monkeypatch.setattr("client.deploy.status.days_left", lambda _: 3)
    text = text_of(hospital)
    assert "no head of this ledger was noted" in text
    assert PAGES.say.now.certificate_soon in text


def test_logs_are_shown_line_by_line_and_cannot_write_over_the_page(hospital):
    (hospital / "logs").mkdir()
    (hospital / "logs" / "service.log").write_text("early\n" + "\x1b[92mINFO\x1b[0m <b>\x07\n" * MOST_LINES)
    text = text_of(hospital)
    assert "INFO &lt;b&gt;?" in text
    assert "early" not in text
    assert "\x1b" not in text
    assert CANARY not in text


def test_the_coordinator_is_asked_only_when_a_person_wants_it(made, monkeypatch):
    asked = []
    monkeypatch.setattr("client.deploy.connection.connect", lambda settings: asked.append(settings) or 1 / 0)
    text_of(made)
    assert asked == []
    monkeypatch.undo()
    text = text_of(made, "coordinator")
    assert text.count("<tr><th scope") == 6  # a head and five checks
    assert "problem" in text
    assert "How to fix it:" in text
    assert "no connection" in text
    assert "encoder" not in text


def test_no_text_of_a_record_is_on_any_page(made):
    (made / "logs").mkdir(exist_ok=True)
    for path in ("", "budget", "limits", "now", "coordinator"):
        assert CANARY not in text_of(made, path)
