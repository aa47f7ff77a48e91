"""What a restored ledger lacks is charged from plans; a person is asked for a number only where none is known."""

import json
import shutil
from contextlib import suppress
from unittest.mock import Mock

import pytest

from client.approval.entries import approvals, decide, find_entry, path_of
from client.audit_log import AuditLog, account
from client.command import main
from client.deploy.audit_reading import accepted_ledgers, last_of_audit
from client.deploy.settings import HospitalSettings
from common.ledger.ledger import ChargedRun, Ledger
from common.privacy.accountant import epsilon
from tests.support.federations import plan
from tests.support.hospital import change, opened, said
from tests.support.ledgers import reservation

BEFORE, LATER = "before-1", "later-2"
FIRST, SECOND = plan(2, epsilon=4.0), plan(2, epsilon=6.0, times=3)


def answered(folder, run, agreed, *indices):
    """Approve a plan, and answer these of its questions, as a person and the service do."""
    if not find_entry(folder / "private", run, agreed.digest().hex()):
        opened(folder, agreed, run)
    decide(folder / "private", find_entry(folder / "private", run, agreed.digest().hex()), approve=True, by="anna")
    settings = HospitalSettings.load(folder)
    noted, limits = settings.noted_head, settings.party.limits
    ledger = noted.opened(settings.ledger)
    for index in indices:
        release = agreed.answer_release(index, limits.unknown_shares(agreed))
        place = {"run": run, "index": index, "plan_digest": agreed.digest(), "release": release}
        ledger.reserve(**reservation(**place))
        noted.write(ledger)
        AuditLog(folder / "private").note(run=run, plan_digest=agreed.digest(), request="Ask", index=index)


def ledger(folder):
    return Ledger(folder / "private" / "ledger.db", read_only=True)


def true(folder):
    """What was charged in the ledger that is lost."""
    return Ledger(folder.parent / "true.db", read_only=True).releases()


@pytest.fixture
def lost(made, tmp_path):
    """A hospital that has answered two runs, and has the ledger of before the second."""
    change(made, limits={"malicious_coordinator": False, "corrupt": 0.0, "lifetime_epsilon": 30.0})
    answered(made, BEFORE, FIRST, 0, 1)
    shutil.copy(made / "private" / "ledger.db", tmp_path / "copy.db")
    answered(made, LATER, SECOND, 0, 1, 2)
    shutil.copy(made / "private" / "ledger.db", tmp_path / "true.db")
    shutil.copy(tmp_path / "copy.db", made / "private" / "ledger.db")
    return made


def test_after_a_restore_each_delta_has_the_figure_of_the_true_ledger(lost, capsys):
    assert main(["ledger", "accept", str(lost)]) == 0
    assert f"3 answers of run {LATER}\n" in capsys.readouterr().out
    for delta in (1e-4, 1e-5):
        main(["ledger", "show", str(lost / "private" / "ledger.db"), "--json", "--delta", str(delta)])
        shown = json.loads(capsys.readouterr().out)
        assert shown["all"]["epsilon"] == epsilon(true(lost), delta)
        assert [row["charged"] for row in shown["runs"]] == [2, 3]
    assert {entry.run: bool(entry.closed) for entry in approvals(lost / "private")} == {BEFORE: True, LATER: True}


def test_a_damaged_ledger_is_charged_anew_from_the_plans(lost):
    (lost / "private" / "ledger.db").write_bytes(b"no ledger" * 100)
    assert main(["ledger", "accept", str(lost)]) == 0
    for delta in (1e-4, 1e-5):
        assert epsilon(ledger(lost).releases(), delta) == epsilon(true(lost), delta)


def test_a_plan_of_which_one_answer_is_lacking_is_charged_in_full_once(made, tmp_path):
    answered(made, LATER, SECOND, 0)
    shutil.copy(made / "private" / "ledger.db", tmp_path / "copy.db")
    answered(made, LATER, SECOND, 1)
    shutil.copy(tmp_path / "copy.db", made / "private" / "ledger.db")
    assert main(["ledger", "accept", str(made)]) == 0
    assert [(entry.index, entry.committed) for entry in ledger(made).entries()] == [(0, True), (1, True), (2, True)]
    assert HospitalSettings.load(made).noted_head.runs() == {LATER: ChargedRun(3, SECOND.digest().hex())}


def test_a_plan_that_is_not_known_here_is_asked_for_by_its_run(lost, capsys):
    for path in (lost / "private" / "runs").iterdir():
        path.unlink()
    before = (lost / "private" / "ledger.db").read_bytes()
    assert LATER in said(capsys, "ledger", "accept", lost)
    assert (lost / "private" / "ledger.db").read_bytes() == before
    assert main(["ledger", "accept", str(lost), "--lost", "6"]) == 0
    assert epsilon(ledger(lost).releases(), 1e-5) >= epsilon(true(lost), 1e-5)


def test_a_run_that_was_answered_for_two_plans_is_asked_for(lost, capsys):
    AuditLog(lost / "private").note(run=LATER, plan_digest=FIRST.digest(), request="Ask", index=0)
    assert LATER in said(capsys, "ledger", "accept", lost)


@pytest.mark.parametrize("note", ["of an earlier version", "lost"])
@pytest.mark.parametrize("log", ["whole", "moved away"])
def test_without_a_note_of_the_runs_a_person_is_asked_and_the_plans_are_charged_all_the_same(log, note, lost, capsys):
    head = lost / "private" / "ledger.head"
    head.write_text(head.read_text().split()[0]) if note != "lost" else head.unlink()
    if log == "moved away":
        (lost / "private" / "audit.jsonl").unlink()
        path = path_of(lost / "private", LATER, SECOND.digest().hex())
        path.write_text(json.dumps(json.loads(path.read_text()) | {"data": "admitted"}))
    said(capsys, "ledger", "accept", lost)
    assert main(["ledger", "accept", str(lost), "--lost", "0"]) == 0
    assert epsilon(ledger(lost).releases(), 1e-5) == epsilon(true(lost), 1e-5)
    assert "caucus-party rotate" in capsys.readouterr().out


@pytest.mark.parametrize("had", range(SECOND.total_queries + 1))
def test_a_private_folder_of_before_without_a_note_never_gives_budget_back(had, made, tmp_path):
    """Whatever part of an approved plan was answered when the copy was made, the rest is charged too."""
    private = made / "private"
    answered(made, LATER, SECOND, *range(had))
    shutil.copytree(private, tmp_path / "backup")
    answered(made, LATER, SECOND, *range(had, SECOND.total_queries))
    shutil.copy(private / "ledger.db", tmp_path / "true.db")
    shutil.rmtree(private)
    shutil.copytree(tmp_path / "backup", private)
    (private / "ledger.head").unlink(missing_ok=True)
    assert main(["ledger", "accept", str(made), "--lost", "0"]) == 0
    for delta in (1e-4, 1e-5):
        assert epsilon(ledger(made).releases(), delta) == epsilon(true(made), delta)


def test_a_number_that_was_typed_is_charged_again_from_the_note(lost):
    """Nobody has to know what --lost was, when the ledger that has its charge is lost as well."""
    assert main(["ledger", "accept", str(lost), "--lost", "24.5"]) == 0
    spent = ledger(lost).releases()
    shutil.copy(lost.parent / "copy.db", lost / "private" / "ledger.db")
    assert main(["ledger", "accept", str(lost)]) == 0
    assert epsilon(ledger(lost).releases(), 1e-5) == epsilon(spent, 1e-5)


@pytest.mark.parametrize("number", ["0.5", "inf"])
def test_an_accept_that_is_repeated_after_an_interruption_charges_no_less(number, lost, monkeypatch):
    with monkeypatch.context() as interrupted:
        interrupted.setattr("client.deploy.accept.end_all", Mock(side_effect=KeyboardInterrupt))
        with suppress(KeyboardInterrupt):
            main(["ledger", "accept", str(lost), "--lost", number])
    spent = epsilon(ledger(lost).releases(), 1e-5)
    assert main(["ledger", "accept", str(lost), "--lost", number]) == 0
    assert epsilon(ledger(lost).releases(), 1e-5) >= spent


@pytest.mark.parametrize("step", ["end_all", "known_records.settle"])
def test_who_accepted_a_ledger_is_on_record_before_the_ledger_has_it(step, lost, monkeypatch):
    head, private = ledger(lost).head().chain, HospitalSettings.load(lost).private
    with monkeypatch.context() as interrupted:
        interrupted.setattr(f"client.deploy.accept.{step}", Mock(side_effect=KeyboardInterrupt))
        with suppress(KeyboardInterrupt):
            main(["ledger", "accept", str(lost), "--lost", "inf"])
    line = json.loads((private / "audit.jsonl").read_text().splitlines()[-1])
    assert line | {"when": ""} == {
        "when": "",
        "by": account(),
        "from": head,
        "to": ledger(lost).head().chain,
        "charged": {LATER: 3},
        "lost": "inf",
    }
    assert [shown.detail for shown in accepted_ledgers(private)] == [last_of_audit(private)[0].detail]


def test_without_a_line_on_record_nothing_is_accepted(lost, monkeypatch):
    before = ledger(lost).head()
    monkeypatch.setattr(AuditLog, "note_accepted", Mock(side_effect=OSError))
    assert main(["ledger", "accept", str(lost)]) == 1
    assert ledger(lost).head() == before
