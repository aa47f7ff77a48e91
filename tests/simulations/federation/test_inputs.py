"""What is odd about a simulation's data is said once, before its parties are built."""

import json
import logging
import shutil
import stat
from pathlib import Path

import pytest

from common.errors import CheckpointError, ConfigError
from server.documents.weaknesses import InputWeaknesses
from server.prepare.compose import compose_settings
from simulations.federation import inputs, parties
from tests.support.runs import labelled, tiny

IID = "federation.partition=iid"


@pytest.fixture(autouse=True)
def _run_folder(tmp_path, monkeypatch):
    """An empty run folder, in which nothing is known of a run."""
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")


def warned(caplog, task, *overrides):
    """The warnings about these settings."""
    caplog.clear()
    shutil.rmtree("parties", ignore_errors=True)
    inputs.check(compose_settings([*task, "federation.parties=2", *overrides]), Path())
    return [record.message for record in caplog.records if record.levelno == logging.WARNING]


def rows(count, *others):
    return [*((f"zq{i} one", "ab"[i % 2]) for i in range(count)), *others]


def test_nothing_is_said_of_plain_data(tmp_path, caplog):
    assert warned(caplog, labelled(tmp_path), IID) == []
    assert warned(caplog, ["task=demo_notes", "task.records_per_party=20", "task.public_notes=60"]) == []


def test_the_partition_natural_of_a_plain_file_is_said(tmp_path, caplog):
    (line,) = warned(caplog, labelled(tmp_path))
    assert line.startswith("federation.partition=natural: the file of records does not say which hospital has which")
    assert "dealt as by dirichlet with federation.alpha=1" in line


@pytest.mark.parametrize(
    ("private", "message"),
    [
        (
            rows(20, ("a text", "c")),
            "1 of 3 labels have one record, too few to be seen in the noise: c (simulation only); look",
        ),
        (rows(20), "1 of 3 labels have no record: their votes are noise alone"),
        (rows(20, *[("a text", "c")] * 3), "2 rows of the training file repeat others, and each votes"),
    ],
)
def test_labels_and_repeated_rows(private, message, tmp_path, caplog):
    task = [setting for setting in labelled(tmp_path, train=private) if not setting.startswith("task.labels")]
    (line,) = warned(caplog, [*task, "task.labels={a: null, b: null, c: null}"], IID)
    assert line.startswith(message)
    assert "(simulation only); " in line


def test_a_label_that_six_and_more_share_is_cut_short(tmp_path, caplog):
    private = rows(20, *((f"text {label}", label) for label in "cdefgh"))
    task = [setting for setting in labelled(tmp_path, train=private) if not setting.startswith("task.labels")]
    labels = ", ".join(f"{label}: null" for label in "abcdefgh")
    (line,) = warned(caplog, [*task, f"task.labels={{{labels}}}"], IID)
    assert "6 of 8 labels have one record" in line
    assert ": c, d, e, f, g, ... (simulation only)" in line


def test_rows_with_several_labels_in_a_task_with_one(tmp_path, caplog):
    task = labelled(tmp_path)
    sets = ("a", "b", "a;b")
    (tmp_path / "train.csv").write_text("text,labels\n" + "".join(f"zq {i},{sets[i % 3]}\n" for i in range(39)))
    (line,) = warned(caplog, task, IID)
    what = "13 rows have several labels, of which only the first counts"
    assert line == f"{what} (simulation only); raise task.labels_per_text"
    assert warned(caplog, task, IID, "task.labels_per_text=2") == []


def test_a_delta_above_one_over_the_records_or_the_users(tmp_path, caplog):
    task = labelled(tmp_path)
    assert warned(caplog, task, IID, "privacy.delta=0.025") == []
    (line,) = warned(caplog, task, IID, "privacy.delta=0.026")
    assert line.startswith(
        "privacy.delta=0.026 is above 1 / 40, one over the number of records (simulation only); choose"
    )
    (tmp_path / "train.csv").write_text(
        "text,label,user\n" + "".join(f"zq {i},{'ab'[i % 2]},u{i % 20}\n" for i in range(40))
    )
    user = ("federation.parties=20", "privacy.unit=user", "privacy.max_records=10")
    *_, line = warned(caplog, task, IID, "privacy.delta=0.06", *user)
    assert line.startswith("privacy.delta=0.06 is above 1 / 20, one over the number of users (simulation only); choose")


def test_records_without_a_user_at_user_level(tmp_path, caplog):
    task = labelled(tmp_path)
    lines = warned(caplog, task, IID, "privacy.unit=user", "privacy.max_records=4")
    assert (
        sum(line.startswith("privacy.unit=user, and 40 of 40 records name no user: at a party") for line in lines) == 1
    )


@pytest.mark.parametrize(
    ("overrides", "bound"), [(["privacy.delta=0.05"], 20), (["federation.max_records=100000"], 100000)]
)
def test_a_delta_of_one_over_the_records_of_a_party_is_refused_before_the_parties_are_built(overrides, bound, tmp_path):
    with pytest.raises(ConfigError, match=f"privacy.delta; expected below 1/{bound}, one over the number of records"):
        inputs.check(compose_settings([*labelled(tmp_path), IID, "federation.parties=2", *overrides]), Path())


def test_a_missing_test_file_and_one_with_private_records(tmp_path, caplog):
    task = labelled(tmp_path)
    (line,) = warned(caplog, task, IID, "task.test=null")
    assert line == "no held-out texts (task.test): no accuracy and no FID will be measured"
    (line,) = warned(caplog, task, IID, f"task.test={tmp_path}/train.csv")
    message = "40 of 40 texts of task.test are private records too: the accuracy is too high"
    assert line == f"{message} (simulation only); take other texts (task.test)"
    (line,) = warned(caplog, task, IID, f"task.test={tmp_path}/train.csv", "task.labels_per_text=2")
    assert "private records too: the micro F1 is too high (simulation only)" in line


def test_public_text_with_texts_of_the_test_set(tmp_path, caplog):
    held = [(f"Held out {i}.", "ab"[i % 2]) for i in range(10)]
    task = labelled(tmp_path, test=held, public=["another text", *(text.upper() for text, _ in held[:4])])
    (line,) = warned(caplog, task, IID)
    assert line.startswith("4 of 10 texts of task.test are in task.public_text too")


def test_a_run_goes_on_with_the_records_and_texts_that_it_began_with(tmp_path, caplog):
    for name in ("train", "test", "public_text"):
        task = labelled(tmp_path)
        warned(caplog, task, IID)
        assert stat.S_IMODE((Path("parties") / inputs.INPUTS).stat().st_mode) == 0o600
        inputs.check(compose_settings([*task, IID, "federation.parties=2"]), Path())
        path = tmp_path / ("public.txt" if name == "public_text" else f"{name}.csv")
        path.write_text("\n".join(path.read_text().splitlines()[:-1]))
        with pytest.raises(CheckpointError, match=rf"^task\.{name}; expected what the run was begun with"):
            inputs.check(compose_settings([*task, IID, "federation.parties=2"]), Path())


def test_public_text_with_private_texts(tmp_path, caplog):
    private = rows(20)
    task = labelled(tmp_path, train=private, public=[f"{private[3][0]} ", "another text"])
    (line,) = warned(caplog, task, IID)
    assert line.startswith("1 of 20 private texts are in task.public_text too: models learn from them")
    for shared in (20, 3):  # of 20, in capitals
        public = ["another text", *(text.upper() for text, _ in private[:shared])]
        task = labelled(tmp_path, train=private, public=public)
        with pytest.raises(ConfigError, match=rf"task\.public_text; expected text that is public; got {shared} of 20"):
            warned(caplog, task, IID)
    assert warned(caplog, task, IID, "task.public_text=null", "llm=anthropic") == []


def test_each_is_said_once_and_before_the_parties_are_built(tmp_path, caplog, monkeypatch):
    built = parties.parties

    def after(*arguments):
        assert "2 rows of the training file repeat others" in caplog.text
        return built(*arguments)

    monkeypatch.setattr(parties, "parties", after)
    short = ("method.rounds=2", "method.samples=24", "llm.use=[broad]")
    tiny(tmp_path / "run", *labelled(tmp_path, train=rows(20, *[("a text", "b")] * 3)), *short)
    assert caplog.text.count("2 rows of the training file repeat others") == 1
    assert caplog.text.count("federation.partition=natural: ") == 1
    facts, page = (
        json.loads((tmp_path / "run" / "report.json").read_text()),
        (tmp_path / "run" / "release.md").read_text(),
    )
    (weakness,) = InputWeaknesses.load(tmp_path / "run").weaknesses
    assert weakness.to_json() in facts["weaknesses"]
    assert "2 rows of the training file repeat others, and each votes: remove" in page
