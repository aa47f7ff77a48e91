"""A hospital's folder in which something is damaged, missing or open: each file with each damage is a case."""

import json
import os
import pwd
import shutil
from itertools import chain, combinations

import pytest

from client.command import main
from client.deploy import host
from client.deploy.settings import HospitalSettings
from common import messages as m
from common.errors import CaucusError
from common.ledger.ledger import Ledger
from common.models.encoder import Encoder
from common.privacy.accountant import epsilon
from tests.support.federations import plan
from tests.support.hospital import change, operated, said, sent
from tests.support.ledgers import reservation
from tests.support.party_requests import send

AGREED = plan(2, encoder=Encoder.hashed_ngrams().digest, secure=False, threshold=1)
OPENING = {"agreed": AGREED, "party": 1, "run": "pilot"}
DAMAGE = {
    "empty": lambda content: b"",
    "half": lambda content: content[: len(content) // 2],
    "zeros": lambda content: bytes(len(content)),
    "another content": lambda content: b"[]",
    "gone": None,
}
COMMANDS = (
    ("status", "FOLDER"),
    ("approve", "FOLDER", "--refused", "--list"),
    ("audit", "FOLDER", "--run", "pilot", "--control", "FOLDER/../control.csv"),
    ("ledger", "show", "FOLDER"),
    ("ledger", "accept", "FOLDER", "--lost", "1"),
)


def started(folder):
    return host.service(HospitalSettings.load(folder))


@pytest.fixture
def answered(made):
    """A hospital's folder after a run with a charge and a release."""
    change(made, approval="auto", limits={"min_survivors": 1, "malicious_coordinator": False})
    service = started(made)
    assert isinstance(send(service, m.Open(AGREED.to_json()), **OPENING), m.Opened)
    service._ledger.reserve(**reservation(run="pilot"))
    service._noted_head.write(service._ledger)
    (entry,) = (made / "private" / "runs").iterdir()
    sent(made, "pilot", b'{"text": "one"}\n', entry.stem)
    for path in (made / "private" / "releases").iterdir():
        path.chmod(0o600)
    (made / "private" / "releases").chmod(0o700)
    control = made.parent / "control.csv"
    control.write_text("text,label\nthird,a\nfourth,b\n")
    control.chmod(0o600)
    return made


def files(folder):
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def copied(folder):
    """A fresh copy of the folder, beside it."""
    copy = folder.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    return shutil.copytree(folder, copy)


@pytest.mark.parametrize("damage", DAMAGE)
def test_after_any_damage_no_command_fails_unforeseen_and_the_service_starts_where_check_passes(
    damage, answered, capsys
):
    assert main(["check", "--offline", str(answered)]) == 0
    surprises = []
    for name in files(answered):
        for command in (("check", "--offline", "--json", "FOLDER"), *COMMANDS):
            path = (folder := copied(answered)) / name
            if DAMAGE[damage] is None:
                path.unlink()
            else:
                path.write_bytes(DAMAGE[damage](path.read_bytes()))
            capsys.readouterr()
            try:
                code = main([word.replace("FOLDER", str(folder)) for word in command])
                if command[0] == "check" and code == 0 and '"waiting"' not in capsys.readouterr().out:
                    started(folder)
            except Exception as error:  # noqa: BLE001 each is shown
                surprises.append((str(name), *command, repr(error)))
    assert surprises == []


def test_a_damaged_file_of_a_run_stops_all_runs_and_the_log_names_it(answered, caplog):
    service = started(answered)
    (entry,) = (answered / "private" / "runs").iterdir()
    for content in ("", "[]", '{"a": 1}', json.dumps(json.loads(entry.read_text()) | {"decision": "perhaps"})):
        entry.write_text(content)
        for run in ("pilot", "another"):
            reply = send(service, m.Open(AGREED.to_json()), **OPENING | {"run": run})
            assert reply == m.Refusal(m.Reason.INTERNAL)
            assert f"at {entry}." in caplog.text
            caplog.clear()


def test_whichever_files_are_lost_no_charge_is_forgotten(answered):
    shutil.rmtree(answered / "private" / "releases")
    private = files(answered / "private")
    assert {"ledger.db", "ledger.head", "audit.jsonl"} < set(map(str, private))
    forgotten = []
    for lost in chain.from_iterable(combinations(private, size) for size in range(1, len(private) + 1)):
        folder = copied(answered)
        for name in lost:
            (folder / "private" / name).unlink()
        try:
            charged = len(started(folder)._ledger.entries())
        except CaucusError:
            continue
        if charged == 0:
            forgotten.append(lost)
    assert forgotten == []


def test_whatever_is_open_to_others_is_a_problem(answered, capsys):
    assert main(["check", "--offline", str(answered)]) == 0
    private = answered / "private"
    for path in (private, *private.rglob("*")):
        mode = path.stat().st_mode
        for bit in (0o010, 0o004):
            path.chmod(mode | bit)
            capsys.readouterr()
            assert main(["check", "--offline", str(answered)]) == 1, path
            assert str(path) in capsys.readouterr().out
        path.chmod(mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_what_root_makes_is_the_services(answered):
    account = next(account for account in pwd.getpwall() if account.pw_uid != 0)
    private = answered / "private"
    for path in (private, *private.rglob("*")):
        os.chown(path, account.pw_uid, account.pw_gid)
    for name in files(private):
        for command in (*COMMANDS, ("approve", "FOLDER", "--run", "pilot", "--no")):
            folder = copied(answered)
            for path in (folder / "private", *(folder / "private").rglob("*")):
                os.chown(path, account.pw_uid, account.pw_gid)
            (folder / "private" / name).unlink()
            main([word.replace("FOLDER", str(folder)) for word in command])
            assert {path.stat().st_uid for path in (folder / "private").rglob("*")} == {account.pw_uid}, command


def test_a_hospital_that_has_never_started_may_begin_with_what_was_spent_elsewhere(made, capsys):
    before = files(made)
    said(capsys, "ledger", "accept", made)  # only a person knows how much
    assert files(made) == before
    assert main(["ledger", "accept", str(made), "--lost", "1"]) == 0
    service = started(made)
    assert epsilon(service._ledger.releases(), 1e-4) == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize("note", ["whole", "damaged"])
def test_a_damaged_ledger_without_a_backup_is_set_aside(note, tmp_path, capsys):
    folder = operated(tmp_path / "hospital")
    ledger = folder / "private" / "ledger.db"
    damaged = ledger.read_bytes()[:5000]
    ledger.write_bytes(damaged)
    if note == "damaged":
        (folder / "private" / "ledger.head").write_text("none")
    assert main(["status", str(folder)]) == 1
    assert main(["ledger", "accept", str(folder), "--lost", "2"]) == 0
    (aside,) = (folder / "private").glob("ledger.db.damaged-*")
    assert aside.read_bytes() == damaged
    assert str(aside) in capsys.readouterr().out
    settings = HospitalSettings.load(folder)
    assert len(settings.noted_head.opened(ledger).entries()) == 1
    assert Ledger(ledger).verify()
