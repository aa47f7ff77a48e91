"""`caucus-coordinator send`: what is sent, what is said of it, and what is not sent at all; Flower is a stand-in."""

import fcntl
import json
import os

import pytest

from server.command import main
from server.deploy import run_state
from server.deploy import send as module
from server.deploy.settings import CoordinatorSettings
from server.documents.run import TEXTS
from server.failure import lock_folder
from server.run_folder import SENDING
from tests.support.documents import privacy_json
from tests.support.flower import DONE, SMALL


@pytest.fixture
def flower(flower, capsys):
    """A coordinator with two hospitals and a complete run, by its Flower."""
    flower.leaves = DONE | {"privacy.json": json.dumps(privacy_json()), TEXTS: '{"text": "a"}\n'}
    assert main(["run", "--yes", str(flower.folder), "first", *SMALL]) == 0
    flower.asked.clear()
    capsys.readouterr()
    return flower


def sends(flower, capsys, **delivery):
    """Send the texts, where the process leaves this; return the exit code, the lines and the error."""
    flower.leaves = (
        {"lock": "17", "sent.json": json.dumps({"texts": "0" * 64} | delivery)} if delivery else {"lock": "17"}
    )
    code = main(["send", str(flower.folder), "first"])
    out, err = capsys.readouterr()
    return code, out.splitlines(), err


def test_who_has_the_texts_and_who_does_not_is_told_until_all_have_them(flower, capsys):
    missing = {"St. Luke": "is offline"}
    code, out, err = sends(flower, capsys, sent_at="1", received={"St. Mary": "2026-01-02"}, missing=missing)
    (line,) = out
    assert (code, line.startswith("St. Mary"), line.endswith("2026-01-02")) == (1, True, True)
    assert "got St. Luke is offline" in err
    assert flower.command("send") in err
    both = {"St. Mary": "2026-01-02", "St. Luke": "2026-01-03"}
    code, out, err = sends(flower, capsys, sent_at="2", received=both, missing={})
    assert (code, len(out), err) == (0, 2, "")
    run = flower.folder / "runs" / "first"
    assert f'run-folder = "{run / SENDING}"' in (run / SENDING / "run.toml").read_text()
    assert main(["status", str(flower.folder)]) == 0
    assert "run first: complete" in capsys.readouterr().out


def test_a_process_that_ends_without_a_word_has_sent_nothing(flower, capsys):
    for says in ({"sent_at": "1", "received": {}, "missing": {}}, {}):
        code, _, err = sends(flower, capsys, **says)
    assert (code, run_state.DIED in err) == (1, True)
    flower.leaves = {"lock": "17", "error.txt": "hospitals; got none"}
    assert main(["send", str(flower.folder), "first"]) == 1
    assert "hospitals;" in capsys.readouterr().err
    flower.leaves = {}
    assert main(["send", str(flower.folder), "first"]) == 1
    assert "No heartbeat" in capsys.readouterr().err


def test_a_run_is_sent_once_at_a_time(flower, capsys):
    (folder := flower.folder / "runs" / "first" / SENDING).mkdir()
    with lock_folder(folder):
        assert sends(flower, capsys)[0] == 1
    assert flower.asked == []


def test_a_process_of_which_flower_knows_nothing_keeps_no_other_from_being_started(flower, capsys):
    settings, run = CoordinatorSettings.load(flower.folder), flower.folder / "runs" / "first"
    flower.leaves, flower.says = {}, "pending"
    module.begin(settings, run)
    assert main(["send", str(flower.folder), "first"]) == 1
    assert "another process is sending" in capsys.readouterr().err
    flower.fails = {"list"}
    assert "Flower says nothing" in module.delivery_state(settings, run, []).problem
    assert sends(flower, capsys, sent_at="1", received={"St. Mary": "2026-01-02"}, missing={})[0] == 0
    assert flower.asked.count("run") == 2


def test_no_other_command_acts_on_the_run_while_its_sending_is_begun(flower, monkeypatch):
    def submit(_, folder):
        descriptor = os.open(folder.parent, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(descriptor)
        begun.append(folder)

    begun = []
    monkeypatch.setattr(module, "submit", submit)
    module.begin(CoordinatorSettings.load(flower.folder), flower.folder / "runs" / "first")
    assert begun


UNASKED = {"epsilon": 0.0, "queries_asked": 0, "queries_planned": 2}
EARLIER = {"run": "a", "plan_digest": "", "encoder": ""}


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("report.html", None, "complete"),
        ("privacy.json", json.dumps(privacy_json(planned_epsilon="inf")), "with a guarantee"),
        ("privacy.json", "{", "privacy.json"),
        ("privacy.json", json.dumps(privacy_json(spent=UNASKED)), "asked none"),
        ("privacy.json", json.dumps(privacy_json(earlier=EARLIER)), "asked none"),
        (TEXTS, None, TEXTS),
    ],
)
def test_what_no_hospital_should_be_sent_is_not_sent(flower, capsys, name, content, wanted):
    file = flower.folder / "runs" / "first" / name
    file.write_text(content) if content else file.unlink()
    code, _, err = sends(flower, capsys)
    assert code != 0
    assert wanted in err
    assert "run" not in flower.asked
    assert not (file.parent / SENDING / "run.toml").exists()


def test_more_than_a_hospital_takes_is_not_sent(flower, capsys, monkeypatch):
    monkeypatch.setattr(module, "LARGEST_RELEASE", 10)
    assert "10 bytes; got 14" in sends(flower, capsys)[2]
    assert flower.asked == []
