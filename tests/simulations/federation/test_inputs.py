"""What is odd about a simulation's data is said once, before its parties are built."""

import logging
import shutil
import stat
from pathlib import Path

import pytest

from common.errors import CheckpointError, ConfigError
from server.documents.run import WeaknessCode
from server.prepare.compose import compose_settings
from simulations.federation import inputs
from tests.support.runs import labelled

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
    inputs.check_inputs(compose_settings([*task, "federation.parties=2", *overrides]), Path())
    return [record.message for record in caplog.records if record.levelno == logging.WARNING]


def rows(count, *others):
    return [*((f"zq{i} one", "ab"[i % 2]) for i in range(count)), *others]


def test_nothing_is_said_of_plain_data(tmp_path, caplog):
    assert warned(caplog, labelled(tmp_path), IID) == []
    assert warned(caplog, ["task=demo_notes", "task.records_per_party=20", "task.public_notes=60"]) == []


def test_the_partition_natural_of_a_plain_file_is_said(tmp_path, caplog):
    (line,) = warned(caplog, labelled(tmp_path))
    assert line.startswith("federation.partition=natural: ")
    assert "federation.alpha=1" in line


ONE_EACH = [(f"text {label}", label) for label in "cdefgh"]


@pytest.mark.parametrize(
    ("others", "labels", "facts"),
    [
        ([("a text", "c")], "abc", ("1 of 3 labels", "one record", ": c (")),
        ([], "abc", ("1 of 3 labels", "no record")),
        ([("a text", "c")] * 3, "abc", ("2 rows",)),
        (ONE_EACH, "abcdefgh", ("6 of 8 labels", "one record", ": c, d, e, f, g, ... (")),
    ],
    ids=["one record", "no record", "repeated rows", "more labels than are listed"],
)
def test_labels_of_one_or_no_record_and_repeated_rows_are_said(others, labels, facts, tmp_path, caplog):
    private = labelled(tmp_path, train=rows(20, *others))
    task = [setting for setting in private if not setting.startswith("task.labels")]
    (line,) = warned(caplog, [*task, f"task.labels={{{', '.join(f'{label}: null' for label in labels)}}}"], IID)
    assert [fact for fact in (*facts, "(simulation only). ") if fact not in line] == []


def test_rows_with_several_labels_in_a_task_with_one(tmp_path, caplog):
    task = labelled(tmp_path)
    sets = ("a", "b", "a;b")
    (tmp_path / "train.csv").write_text("text,labels\n" + "".join(f"zq {i},{sets[i % 3]}\n" for i in range(39)))
    (line,) = warned(caplog, task, IID)
    assert all(fact in line for fact in ("13 rows", "(simulation only)", "task.labels_per_text"))
    assert warned(caplog, task, IID, "task.labels_per_text=2") == []


def test_a_delta_above_one_over_the_records_or_the_users(tmp_path, caplog):
    task = labelled(tmp_path)
    assert warned(caplog, task, IID, "privacy.delta=0.025") == []
    (line,) = warned(caplog, task, IID, "privacy.delta=0.026")
    assert line.startswith(f"{WeaknessCode.LARGE_DELTA}: privacy.delta=0.026 is above 1 / 40,")
    users = "".join(f"zq {i},{'ab'[i % 2]},u{i % 20}\n" for i in range(40))
    (tmp_path / "train.csv").write_text(f"text,label,user\n{users}")
    user = ("federation.parties=20", "privacy.unit=user", "privacy.max_records=10")
    *_, line = warned(caplog, task, IID, "privacy.delta=0.06", *user)
    assert line.startswith(f"{WeaknessCode.LARGE_DELTA}: privacy.delta=0.06 is above 1 / 20,")


def test_records_without_a_user_at_user_level(tmp_path, caplog):
    lines = warned(caplog, labelled(tmp_path), IID, "privacy.unit=user", "privacy.max_records=4")
    start = f"{WeaknessCode.RECORDS_WITHOUT_USER}: privacy.unit=user,"
    assert sum(line.startswith(start) and "40 of 40" in line for line in lines) == 1


@pytest.mark.parametrize(
    ("overrides", "bound"), [(["privacy.delta=0.05"], 20), (["federation.max_records=100000"], 100000)]
)
def test_a_delta_of_one_over_the_records_of_a_party_is_refused_before_the_parties_are_built(overrides, bound, tmp_path):
    with pytest.raises(ConfigError, match=f"^privacy.delta; .* 1/{bound},"):
        inputs.check_inputs(compose_settings([*labelled(tmp_path), IID, "federation.parties=2", *overrides]), Path())


def test_a_missing_test_file_and_one_with_private_records(tmp_path, caplog):
    task, private = labelled(tmp_path), f"task.test={tmp_path}/train.csv"
    for overrides, facts in (
        (["task.test=null"], ("(task.test)",)),
        ([private], ("40 of 40", "accuracy", "(simulation only)")),
        ([private, "task.labels_per_text=2"], ("40 of 40", "micro F1", "(simulation only)")),
    ):
        (line,) = warned(caplog, task, IID, *overrides)
        assert [fact for fact in facts if fact not in line] == []


def test_public_text_with_texts_of_the_test_set(tmp_path, caplog):
    held = [(f"Held out {i}.", "ab"[i % 2]) for i in range(10)]
    task = labelled(tmp_path, test=held, public=["another text", *(text.upper() for text, _ in held[:4])])
    (line,) = warned(caplog, task, IID)
    assert all(fact in line for fact in ("4 of 10", "task.test", "task.public_text"))


def test_a_run_goes_on_with_the_records_and_texts_that_it_began_with(tmp_path, caplog):
    for name in ("train", "test", "public_text"):
        task = labelled(tmp_path)
        warned(caplog, task, IID)
        assert stat.S_IMODE((Path("parties") / inputs.INPUTS).stat().st_mode) == 0o600
        inputs.check_inputs(compose_settings([*task, IID, "federation.parties=2"]), Path())
        path = tmp_path / ("public.txt" if name == "public_text" else f"{name}.csv")
        path.write_text("\n".join(path.read_text().splitlines()[:-1]))
        with pytest.raises(CheckpointError, match=rf"^task\.{name};"):
            inputs.check_inputs(compose_settings([*task, IID, "federation.parties=2"]), Path())


def test_public_text_with_private_texts(tmp_path, caplog):
    private = rows(20)
    task = labelled(tmp_path, train=private, public=[f"{private[3][0]} ", "another text"])
    (line,) = warned(caplog, task, IID)
    assert all(fact in line for fact in ("1 of 20", "task.public_text"))
    for shared in (20, 3):  # of 20, in capitals
        public = ["another text", *(text.upper() for text, _ in private[:shared])]
        task = labelled(tmp_path, train=private, public=public)
        with pytest.raises(ConfigError, match=rf"^task\.public_text; .*; got {shared} of 20"):
            warned(caplog, task, IID)
    assert warned(caplog, task, IID, "task.public_text=null", "llm=anthropic") == []
