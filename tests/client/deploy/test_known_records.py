"""`caucus-party init` warns of another folder over the same file of records, and no note keeps it from its work."""

import hashlib
import json
import shlex
import shutil
import subprocess

import pytest

from client.command import main
from client.deploy.known_records import former_folders
from client.deploy.lost_charges import LOST
from client.deploy.preflight import findings
from client.deploy.settings import HospitalSettings
from common.ledger.ledger import Ledger
from common.system import processes
from common.system.enrolment import PartyFile, RosterFile
from tests.support.enrolment import PARTY
from tests.support.hospital import init_words, said, spend
from tests.support.hospital import note as note_request


@pytest.fixture
def note(tmp_path, monkeypatch):
    """Where the note of an account is that has none yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "caucus" / "records.json"


@pytest.fixture
def init(made, note, capsys):
    """A function that makes a folder and returns the warnings."""

    def begin(name, records):
        assert main(init_words(made.parent / name, records=records, name=name)) == 0
        return " ".join(capsys.readouterr().out.partition("keys and settings")[0].split())

    return begin


def records(path, content="text,label\none,a\n"):
    path.write_text(content)
    path.chmod(0o600)
    return path


def test_a_second_folder_over_one_file_is_told_of_the_first(init, tmp_path):
    file = records(tmp_path / "one.csv")
    assert init("a", file) == ""
    a = tmp_path / "a"
    assert init("b", file).startswith(f"WARNING: {a} has the same records")
    # At another path, a copy and a link; at the same path, whatever the file has become.
    (tmp_path / "link.csv").symlink_to(file)
    assert str(a) in init("c", tmp_path / "link.csv")
    assert str(a) in init("d", records(tmp_path / "copy.csv"))
    assert init("e", records(tmp_path / "other.csv", "text,label\nthird,a\n")) == ""
    records(file, "text,label\none,a\ntwo,b\n")
    assert str(a) in init("f", file)
    assert "is gone" not in init("g", file)


GONE = "the same records, and is gone"


def test_a_folder_that_is_gone_is_told_of_until_what_it_spent_is_charged(init, tmp_path, capsys):
    file = records(tmp_path / "one.csv")
    a, b = tmp_path / "a", tmp_path / "b"
    init("a", file)
    shutil.rmtree(a)
    for folder, at in ((a, file), (b, records(tmp_path / "copy.csv"))):  # the first is made again of itself
        warning = init(folder.name, at)
        assert f"{a} had {GONE}" in warning
        assert f"caucus-party ledger accept {folder} --lost EPSILON" in warning
        shutil.rmtree(a, ignore_errors=True)
    assert f"{a} had {GONE}" in found(b)
    said(capsys, "ledger", "accept", b, code=2)  # only a person knows how much
    assert [main(["ledger", "accept", str(b), "--lost", "2"]) for _ in range(2)] == [0, 2]
    assert GONE not in found(b)
    (lost,) = Ledger(b / "private" / "ledger.db", read_only=True).entries()
    assert (lost.run[:24], lost.committed, lost.release.scale) == (LOST, True, 0.5)
    assert "is gone" not in init("c", file)  # b has it


def test_runs_of_this_folder_go_on_where_only_a_former_one_is_lost(init, tmp_path):
    file, a = records(tmp_path / "one.csv"), tmp_path / "a"
    init("a", file)
    shutil.rmtree(a)
    init("a", file)
    spend(a, "r")
    assert main(["ledger", "accept", str(a), "--lost", "0"]) == 0
    assert not former_folders(a)
    spend(a, "r", 1)


def begin_again(a, b):
    """Copy the ledger by the command that `check` prints."""
    command = found(b).partition("before the first start: ")[2].partition(";")[0]
    subprocess.run(shlex.split(command), check=True)
    assert (b / "private" / "audit.jsonl").exists() == (a / "private" / "audit.jsonl").exists()


def leave(a, _):
    assert main(["leave", str(a), "--yes"]) == 0


def delete(a, _):
    shutil.rmtree(a)


def accept(_, b):
    assert main(["ledger", "accept", str(b), "--lost", "2"]) == 0


def answer(a, _):
    spend(a, "r")
    note_request(a, "Ask")


def answer_too(_, b):
    spend(b, "s")


def started(_, b):
    assert main(["start", str(b)]) == 0


THERE, GONE_TOO = (
    "and budgets of two folders over one file add up",
    "and is gone with its ledger. Charge what it spent: ",
)
LEFT, LEFT_LATER = "Copy its ledger before the first start: install -m 600 ", "Charge what caucus-party ledger show "
STATES = {
    "there": ([answer], THERE, [], ""),
    "left": ([answer, leave], LEFT, [], LEFT),
    "left, and never answered": ([leave], "", [], ""),
    "gone before init": ([answer, delete], GONE_TOO, [], GONE_TOO),
    "gone after init": ([answer], THERE, [delete], GONE_TOO),
    "left after init": ([answer], THERE, [leave], LEFT),
    "left after init and answers": ([answer], THERE, [answer_too, leave], LEFT_LATER),
    "left, and gone after init": ([answer, leave], LEFT, [delete], GONE_TOO),
    "left and gone before init": ([answer, leave, delete], GONE_TOO, [], GONE_TOO),
    "copied back": ([answer, leave], LEFT, [begin_again], ""),
    "copied back, started and gone": ([answer, leave], LEFT, [begin_again, started, delete], ""),
    "left and accepted": ([answer, leave], LEFT, [accept], ""),
    "gone and accepted": ([answer, delete], GONE_TOO, [accept], ""),
    "accepted and gone": ([answer, leave], LEFT, [accept, delete], ""),
}
"""What happens to folder a before the `init` of b, what `init` says, what happens then, and what b says after that."""


@pytest.mark.parametrize("state", STATES)
def test_no_state_of_the_other_folder_gives_its_budget_back(state, init, tmp_path, capsys, monkeypatch):
    before, at_init, after, problem = STATES[state]
    supervised = []
    monkeypatch.setattr(processes, "supervise", lambda children, **_: supervised.append(children))
    file, a, b = records(tmp_path / "one.csv"), tmp_path / "a", tmp_path / "b"
    init("a", file)
    for happens in before:
        happens(a, b)
    capsys.readouterr()
    said_at_init = init("b", file)
    assert at_init in said_at_init
    assert bool(said_at_init) == bool(at_init)
    party = PartyFile.load(b / "party.json")
    (b / "roster.json").write_text(RosterFile(parties=(PartyFile(**PARTY | {"name": "other"}), party)).to_json())
    for happens in after:
        happens(a, b)
    supervised.clear()
    capsys.readouterr()

    advice = found(b)
    assert main(["status", str(b), "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    spent = {begin_again, accept, answer_too} & {*after}
    assert (status["charged"], status["epsilon"] > 0) == (len(spent), bool(spent))
    assert status["requests"]["answered"] == (begin_again in after)
    if problem:
        assert problem in advice
        assert problem in status["ledger"]["problem"]
        assert status["epsilon_left"] is None
        assert problem in said(capsys, "start", b)
        assert not supervised
    else:
        assert "same records" not in advice
        assert status["ledger"]["problem"] == ""
        assert status["epsilon_left"] == pytest.approx(10 - status["epsilon"], abs=1e-3)
        assert main(["start", str(b)]) == 0
        assert len(supervised) == 1
        assert "same records" not in found(b)


def found(folder):
    """What `check` advises about the records of a folder."""
    settings = HospitalSettings.load(folder)
    return " ".join(finding.fix for finding in findings(settings, offline=True, only={"records"}))


def test_the_note_is_the_accounts_and_holds_no_digest_without_a_key(init, note, tmp_path):
    init("a", records(tmp_path / "one.csv"))
    assert (note.stat().st_mode & 0o777, note.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    content = json.loads(note.read_text())
    assert content["folders"][0] | {"digest": ""} == {
        "folder": str(tmp_path / "a"),
        "records": str(tmp_path / "one.csv"),
        "digest": "",
        "former": [],
    }
    plain = (hash_(b"text,label\none,a\n").hexdigest() for hash_ in (hashlib.sha256, hashlib.sha512, hashlib.md5))
    assert not any(digest in note.read_text() for digest in plain)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[",
        "[1]",
        "[" * 100_000,
        "{}",
        '{"key": "ab", "folders": []}',
        '{"key": 5, "folders": []}',
        "\xff",
        f'{{"key": "{"ab" * 32}", "folders": [{{"folder": "x"}}]}}',
        f'{{"key": "{"ab" * 32}", "folders": [5]}}',
    ],
)
def test_what_is_no_note_is_told_and_begun_anew(content, init, note, tmp_path):
    note.parent.mkdir(parents=True)
    note.write_bytes(content.encode("latin-1"))
    file = records(tmp_path / "one.csv")
    assert str(note) in init("a", file)
    assert str(tmp_path / "a") in init("b", file)


def test_a_note_that_cannot_be_read_or_written_is_told(init, note, tmp_path, monkeypatch):
    file = records(tmp_path / "one.csv")
    (tmp_path / "state").touch()
    assert init("a", file).startswith("WARNING: ")
    (tmp_path / "state").unlink()
    note.mkdir(parents=True)
    assert str(note) in init("b", file)
    note.rmdir()
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert init("c", file) == ""
    assert (tmp_path / "home" / ".local" / "state" / "caucus" / "records.json").exists()
    monkeypatch.setattr("pathlib.Path.home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert "no home" in init("d", file)
