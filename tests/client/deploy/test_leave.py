"""A hospital that leaves keeps its ledger and audit log, sealed, and nothing else of what Caucus made."""

import json
import shutil
import stat
from pathlib import Path

import pytest

from client.command import main
from client.database import COPY
from client.deploy import host, leave
from client.deploy.left import Left
from client.deploy.settings import HospitalSettings
from common.ledger.ledger import Ledger
from common.system import locks
from tests.support.federations import CANARY, plan
from tests.support.hospital import change, note, opened, said, sent
from tests.support.ledgers import ANSWER, KEY, reservation

SEALED = {"private/ledger.db", "private/ledger.head", "private/audit.jsonl", "left.json"}


@pytest.fixture
def hospital(made):
    """A hospital with a plan, a release, logs and a charge whose answer is kept, as in an open run."""
    service = host.service(HospitalSettings.load(made))
    service._ledger.reserve(**reservation())
    service._ledger.keep("r", 0, ANSWER)
    service._ledger.sample_key("r", "draw", KEY)
    service._noted_head.write(service._ledger)
    opened(made, plan(2))
    note(made, "Ask")
    sent(made, "r", json.dumps({"text": CANARY}).encode())
    (made / "logs" / "service.log").write_text("a line")
    return made


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def test_only_sealed_files_stay_and_the_ledger_verifies(hospital, capsys):
    assert main(["leave", str(hospital), "--yes"]) == 0
    out = capsys.readouterr().out
    assert files(hospital) == SEALED
    assert {path.name for path in hospital.iterdir()} == {"private", "left.json"}
    assert {stat.S_IMODE((hospital / name).stat().st_mode) for name in SEALED} == {0o400}
    head = Ledger(hospital / "private" / "ledger.db", read_only=True).verify().chain
    assert (hospital / "private" / "ledger.head").read_text().startswith(head)
    assert main(["ledger", "verify", str(hospital), "--head", head]) == 0
    left = json.loads((hospital / "left.json").read_text())
    assert (left["hospital"], left["head"], left["lifetime_delta"]) == ("St. Mary #1", head, 1e-4)
    assert left["sha256"].keys() == SEALED - {"left.json"}
    assert "caucus-coordinator remove FOLDER 'St. Mary #1'" in out
    assert CANARY not in out
    assert (hospital.parent / "notes.csv").is_file()


def shown(folder, capsys, *more):
    assert main(["ledger", "show", str(folder), "--json", *more]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_sealed_ledger_shows_the_figures_of_before(hospital, capsys):
    change(hospital, limits={"lifetime_delta": 3e-5})
    before = shown(hospital, capsys)
    main(["leave", str(hospital), "--yes"])
    assert "caucus-party page" in capsys.readouterr().out
    after = shown(hospital, capsys)
    assert after["delta"] == before["delta"] == 3e-5
    assert after["all"] == before["all"] | {"closed": 1}
    assert shown(hospital, capsys, "--delta", "1e-7")["delta"] == 1e-7


@pytest.mark.parametrize("command", ["check", "start", "stop", "status", "approve", "page", "rotate", "ledger accept"])
def test_each_command_says_that_this_hospital_left(command, hospital, capsys):
    main(["leave", str(hospital), "--yes"])
    line = said(capsys, *command.split(), hospital)
    assert f"left on {Left.of(hospital).date}, and its ledger" in line
    assert "caucus-party init" not in line


@pytest.mark.parametrize("content", ["", "[", "[1]", "{}", '{"left": 5}'])
def test_a_note_that_leave_did_not_write_is_named(content, hospital, capsys):
    main(["leave", str(hospital), "--yes"])
    (hospital / "left.json").chmod(0o600)
    (hospital / "left.json").write_text(content)
    assert "left.json was changed;" in said(capsys, "status", hospital)


def test_answers_and_sample_keys_of_open_runs_are_erased_and_their_charge_stays(hospital):
    (hospital / "private" / COPY).write_text(json.dumps({"text": CANARY, "label": "a"}))  # of a database's rows
    change(hospital, records=f"private/{COPY}")
    main(["leave", str(hospital), "--yes"])
    assert files(hospital) == SEALED
    content = (hospital / "private" / "ledger.db").read_bytes()
    assert ANSWER not in content
    assert KEY not in content
    (entry,) = Ledger(hospital / "private" / "ledger.db", read_only=True).entries()
    assert entry.committed


def interrupting(monkeypatch, at):
    """Interrupt the command at one of its changes."""
    count = iter(range(1000))

    def counted(function):
        def call(*arguments, **more):
            if next(count) == at:
                raise KeyboardInterrupt
            return function(*arguments, **more)

        return call

    for place, name in ((leave, "_delete"), (leave, "write_atomic"), (Path, "chmod"), (Path, "unlink")):
        monkeypatch.setattr(place, name, counted(getattr(place, name)))
    return count


def test_an_interrupted_leave_can_be_repeated(hospital, monkeypatch, tmp_path):
    with monkeypatch.context() as patched:
        shutil.copytree(hospital, tmp_path / "whole")
        count = interrupting(patched, -1)
        assert main(["leave", str(tmp_path / "whole"), "--yes"]) == 0
        changes = next(count)
    for at in range(changes):
        folder = tmp_path / str(at)
        shutil.copytree(hospital, folder)
        with monkeypatch.context() as patched:
            interrupting(patched, at)
            assert main(["leave", str(folder), "--yes"]) != 0
        assert main(["leave", str(folder), "--yes"]) == 0
        assert files(folder) == SEALED, at
        head = (folder / "private" / "ledger.head").read_text().split()[0]
        assert Ledger(folder / "private" / "ledger.db", read_only=True).verify(head).events
    assert changes > len(SEALED)
    assert main(["leave", str(hospital), "--yes"]) == 0
    assert main(["leave", str(hospital), "--yes"]) == 0  # and of one that has left


def test_without_an_answer_nothing_is_changed(hospital, capsys, monkeypatch):
    before = files(hospital)
    assert "leaving;" in said(capsys, "leave", hospital)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _: "n")
    assert main(["leave", str(hospital)]) == 1
    assert files(hospital) == before


def test_what_is_not_of_caucus_and_what_is_outside_stays_and_is_named(hospital, tmp_path, capsys):
    (tmp_path / "disk").mkdir()
    shutil.move(hospital / "private" / "ledger.head", tmp_path / "disk" / "head")
    shutil.copy(tmp_path / "notes.csv", hospital / "private" / "notes.csv")
    change(hospital, ledger_head=str(tmp_path / "disk" / "head"), records="private/notes.csv")
    (hospital / "mine.txt").write_text("a note of somebody")
    (hospital / "logs" / "link").symlink_to(tmp_path / "disk")
    assert main(["leave", str(hospital), "--yes"]) == 0
    out = capsys.readouterr().out
    assert files(hospital) == SEALED | {"mine.txt", "private/notes.csv"}
    for path in (hospital / "mine.txt", hospital / "private" / "notes.csv", tmp_path / "disk" / "head"):
        assert f": {path}\n" in out
    assert "caucus/records.json" in out
    assert (tmp_path / "disk" / "head").read_text() == (hospital / "private" / "ledger.head").read_text()


def test_a_hospital_that_was_asked_nothing_leaves_too(made):
    assert main(["leave", str(made), "--yes"]) == 0
    assert files(made) == {"left.json"}


def test_over_a_ledger_that_lacks_its_head_nothing_is_deleted(hospital):
    (hospital / "private" / "ledger.head").write_text(64 * "0" + "\n")
    before = files(hospital)
    assert main(["leave", str(hospital), "--yes"]) != 0
    assert files(hospital) - {"run/service.lock", "run/supernode.lock", "run/relay.lock"} == before


def test_a_process_that_cannot_be_stopped_keeps_all(hospital, capsys, monkeypatch):
    monkeypatch.setattr(locks, "holder", lambda *_: 0)
    before = files(hospital)
    assert "another container" in said(capsys, "leave", hospital, "--yes")
    assert files(hospital) == before
