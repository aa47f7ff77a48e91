"""`caucus-party audit`: what it finds, what it writes, and what it never shows."""

import json
import stat

import pytest

from client.approval.entries import approvals, path_of
from client.command import main
from common.errors import MissingPackageError
from tests.support.federations import CANARY, plan
from tests.support.held_back import N, copied, held_back, note, unrelated, write
from tests.support.hospital import opened, said, sent


@pytest.fixture
def control(made):
    """Control records; the hospital has as many other records."""
    return held_back(made)


@pytest.fixture
def released(made, control):
    """Texts: 15 copies of records, and 15 texts that have nothing to do with them."""
    return copied(made)


def test_copies_are_found_and_the_result_stays_in_the_folder(made, control, released, capsys):
    before = {path for path in made.rglob("*") if path.is_file()}
    arguments = ["audit", made, released, "--control", control, "--epsilon", "0.1", "--delta", "1e-6"]
    assert main(list(map(str, arguments))) == 1
    out, err = capsys.readouterr()
    assert CANARY not in out + err
    assert "rare word sequences" in err
    path = made / "private" / "disclosures.json"
    assert {path for path in made.rglob("*") if path.is_file()} - before == {path}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert CANARY not in path.read_text()
    result = json.loads(path.read_text())
    rare = next(test for test in result["learning"] if test["feature"] == "rare word sequences")
    assert (rare["training"], rare["control"], rare["rejected"]) == (15, 0, True)
    assert (result["records"], result["control"], result["texts"]) == (N, N, 30)


def test_a_release_that_the_coordinator_sent_is_named_by_its_run(made, control, capsys):
    sent(made, "first-1", json.dumps({"text": unrelated(1)[0]}).encode())
    assert main(["audit", str(made), "--run", "first-1", "--control", str(control)]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("1 texts, 40 records")
    assert main(["audit", str(made), "--run", "second", "--control", str(control)]) == 2
    assert "no such release was sent here;" in capsys.readouterr().err


def test_without_the_patterns_personal_information_is_said_to_be_untested(made, control, released, capsys, monkeypatch):
    def missing(text):
        raise MissingPackageError("patterns", expected="the package x", got="none")

    monkeypatch.setattr("client.disclosures.features.personal_values", missing)
    write(released, unrelated(30))
    assert main(["audit", str(made), str(released), "--control", str(control)]) == 0
    shown = capsys.readouterr().out
    assert "not tested:" in shown
    assert "rejected: " not in shown
    result = json.loads((made / "private" / "disclosures.json").read_text())
    assert "personal information" not in {test["feature"] for test in result["learning"]}
    assert result["searched"] == 0


@pytest.mark.parametrize(("language", "name"), [("english", "Mrs Smith"), ("german", "Frau Schmidt")])
def test_personal_information_in_the_texts_is_counted(language, name, made, control, capsys):
    texts = write(made.parent / "t.csv", [*unrelated(28), f"seen with {name}", "write to nobody@example.org"])
    assert main(["audit", str(made), str(texts), "--control", str(control), "--language", language]) == 0
    assert "EMAIL 1, PERSON 1" in capsys.readouterr().out
    result = json.loads((made / "private" / "disclosures.json").read_text())
    assert (result["searched"], result["personal"]) == (30, 2)


def test_control_records_that_are_records_are_left_out_and_too_few_are_refused(made, control, released, capsys):
    write(control, [note(number, "a" if number < 4 else "b") for number in range(N)])
    write(released, ["Unrelated"])
    assert main(["audit", str(made), str(released), "--control", str(control)]) == 0
    result = json.loads((made / "private" / "disclosures.json").read_text())
    assert (result["texts"], result["records"], result["control"]) == (1, 36, 36)
    same = said(capsys, "audit", made, released, "--control", made.parent / "notes.csv")
    assert "of training;" in same


def test_wrong_files_and_guarantees_are_one_clear_line(made, control, released, capsys):
    def refusal(*more, texts=released, control=control):
        return said(capsys, "audit", made, texts, "--control", control, *more)

    assert "lacks epsilon or delta" in refusal("--epsilon", "1")
    assert "epsilon;" in refusal("--epsilon=-1", "--delta", "1e-5")
    assert "delta;" in refusal("--epsilon", "1", "--delta", "2")
    control.write_text("text,label\n")
    assert "--control: " in refusal()
    control.chmod(0o644)
    assert "got 0644" in refusal()
    assert "none.csv" in refusal(control=made / "none.csv")
    control.chmod(0o600)
    write(control, [note(number, "b") for number in range(N)])
    released.write_text("words\nx\n")
    assert "synthetic texts:" in refusal()
    assert not (made / "private" / "disclosures.json").exists()


def test_the_guarantee_of_a_sent_run_is_that_of_its_plan(made, control, capsys):
    opened(made, plan(2))
    (entry,) = approvals(made / "private")
    name = path_of(made / "private", entry.run, entry.plan_digest).stem
    sent(made, entry.run, json.dumps({"text": unrelated(1)[0]}).encode(), name)
    assert main(["audit", str(made), "--run", entry.run, "--control", str(control)]) == 0
    assert "epsilon 4, delta 1e-05" in capsys.readouterr().out
    own = ["--epsilon", "0.5", "--delta", "1e-6"]
    assert main(["audit", str(made), "--run", entry.run, "--control", str(control), *own]) == 0
    assert "epsilon 0.5, delta 1e-06" in capsys.readouterr().out
