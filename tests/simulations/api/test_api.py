"""Simulations from Python: the same runs as the command's, tables in memory that leave no trace, and clear errors."""

import copy
import json
import logging
import math
import os
import re
import stat
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hydra import initialize_config_dir
from hydra.core.global_hydra import GlobalHydra

import simulations
from common.domain import Record
from common.errors import CaucusError, CheckpointError, ConfigError, DataError
from common.labelled_files import read_records
from server.command import main as coordinator
from server.documents.codec import with_infinities
from server.llm.builtin.model import BuiltinModel
from server.prepare.compose import compose_settings
from simulations import Result, plan, resume, simulate
from simulations.api import api
from simulations.api.result import Report
from simulations.api.tables import LABELLED, PUBLIC, as_file
from tests.support.runs import LOSES, MORE, WORDS, command, texts

ROOT = Path(__file__).parents[3]
PRIVATE = [(f"zq{i:03} qx{i % 7} vk{i % 5}", "ab"[i % 2]) for i in range(30)]
TRAIN = pd.DataFrame(PRIVATE, columns=["text", "label"])
TEST = [{"text": f"The {WORDS[i % 7]} by the {MORE[i % 11]}.", "label": "ab"[i % 2]} for i in range(10)]
OPEN = [f"The {WORDS[i % 7]} and a {MORE[i % 11]} near the old {MORE[i % 5]}." for i in range(60)]
SMALL = ["method.samples=24", "method.rounds=2", "method.top=2", "method.shots=2", "evaluation.metrics=[]", LOSES]


def small(folder, *more, train=TRAIN, **arguments):
    return simulate(train, TEST, public_text=OPEN, folder=folder, overrides=[*SMALL, *more], **arguments)


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """A place of its own for temporary folders, to see what is left there."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_run_in_this_process_twice_returns_all_results_and_leaves_the_process_as_it_was(
    tmp_path, monkeypatch, temporary, caplog
):
    monkeypatch.chdir(tmp_path)
    root = logging.getLogger()
    umask = os.umask(0o022)
    before = (Path.cwd(), root.level, list(root.handlers), logging.getLogger("caucus").level)
    result, again = small("first"), small(None, epsilon=math.inf)
    after = (Path.cwd(), root.level, list(root.handlers), logging.getLogger("caucus").level)
    assert after == before
    assert os.umask(umask) == 0o022
    assert not logging.getLogger("caucus").handlers
    assert not GlobalHydra.instance().is_initialized()
    assert "round 2 of 2" in (tmp_path / "first" / "run.log").read_text("utf-8")
    assert "round 2 of 2" in caplog.text  # whoever handles logs gets ours, too

    assert result.folder == tmp_path / "first"
    assert {path.stat().st_mode & 0o077 for path in (result.folder, result.folder / "run.log")} == {0}
    count = len(result.texts)  # under noise a text that is written twice may be lost
    assert (result.status, len(again.texts), set(result.texts.label)) == ("complete", 24, {"a", "b"})
    assert list(result.texts) == ["text", "label", "model", "round", "weight"]
    assert result.metrics["synthetic"]["records"] == count > 12
    assert (result.privacy["epsilon"], again.privacy["epsilon"]) == (4.0, math.inf)
    assert set(result.texts["round"]) == {1, 2}
    assert list(result.rounds.candidates.items()) == [(1, 12), (2, count)]
    assert list(result.rounds["tokens.output"] > 0) == [True, True]
    assert "TEXT" not in repr(result)
    for path in result.folder.rglob("*"):  # nothing of tables in memory is in the run folder
        content = path.read_bytes() if path.is_file() else b""
        assert not any(text.encode() in content for text, _ in PRIVATE), path
    assert again.folder.parent.parent == tmp_path / "runs"
    assert again.folder.name.endswith("-wasp")
    assert not list(temporary.glob("caucus-*"))


def test_the_command_gives_the_same_texts_from_files_without_noise(tmp_path):
    TRAIN.to_csv(tmp_path / "train.csv", index=False)
    pd.DataFrame(TEST).to_csv(tmp_path / "test.csv", index=False)
    (tmp_path / "public.txt").write_text("\n".join(OPEN))
    files = [
        f"task.{name}={tmp_path}/{file}"
        for name, file in (("train", "train.csv"), ("test", "test.csv"), ("public_text", "public.txt"))
    ]
    arguments = ["task=csv", *files, *SMALL, "privacy.epsilon=inf", f"hydra.run.dir={tmp_path}/typed"]
    code, output = command(tmp_path, *arguments)
    assert code == 0, output
    memory = small(tmp_path / "memory", epsilon=math.inf)
    paths = simulate(
        tmp_path / "train.csv",
        str(tmp_path / "test.csv"),
        public_text=tmp_path / "public.txt",
        epsilon=math.inf,
        overrides=SMALL,
        folder=tmp_path / "paths",
    )
    assert texts(memory.folder) == texts(paths.folder) == texts(tmp_path / "typed")
    assert memory.metrics == paths.metrics == Result.load(tmp_path / "typed").metrics


def test_the_arguments_are_settings_and_overrides_beat_them(tmp_path):
    rows = [Record(text, label) for text, label in PRIVATE]
    described = {"a": 'it\'s a "b", {c}: 50 %', "b": None}
    result = small(tmp_path / "it's", "federation.parties=2", train=rows, labels=described, delta=1e-4, parties=5)
    assert json.loads((result.folder / "run.json").read_text())["parties"] == 2
    assert json.loads((result.folder / "run.json").read_text())["labels"]["a"] == described["a"]
    assert (result.privacy["delta"], result.privacy["labels_from_records"]) == (1e-4, False)


def test_the_plan_is_the_one_that_the_coordinator_prints_and_no_record_is_read(tmp_path, capsys):
    class Unread:
        def __iter__(self):
            raise AssertionError("read")

    (tmp_path / "public.txt").write_text("\n".join(OPEN))
    overrides = [*SMALL, "federation.expected_records=30"]
    arguments = {"public_text": tmp_path / "public.txt", "labels": ["a", "b"], "parties": 4, "epsilon": 2.0}
    facts = plan(Unread(), tmp_path / "no file.csv", **arguments, overrides=overrides)
    typed = [
        "task=csv",
        "task.test=none.csv",
        f"task.public_text={tmp_path}/public.txt",
        "task.labels={a: null, b: null}",
        *overrides,
        "federation.parties=4",
        "privacy.epsilon=2.0",
        "secagg=semi_honest",
    ]
    assert coordinator(["plan", "--json", *typed]) == 0
    assert facts == with_infinities(json.loads(capsys.readouterr().out))
    assert facts["epsilon"] <= 2.0


def test_what_was_interrupted_goes_on_with_the_same_tables_and_says_so(tmp_path, monkeypatch, temporary):
    whole = small(tmp_path / "whole", epsilon=math.inf)
    generate, requests = BuiltinModel.generate, []

    def interrupted(self, batch, **arguments):
        requests.extend(batch)
        if any(request.good for request in requests):
            raise KeyboardInterrupt
        return generate(self, batch, **arguments)

    monkeypatch.setattr(BuiltinModel, "generate", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        small(tmp_path / "run", epsilon=math.inf)
    (note,) = caught.value.__notes__
    assert note.startswith(f"simulations.resume({str(tmp_path / 'run')!r})")
    assert not list(temporary.glob("caucus-*"))
    assert (Result.load(tmp_path / "run").status, len(Result.load(tmp_path / "run").texts)) == ("partial", 12)
    monkeypatch.setattr(BuiltinModel, "generate", generate)
    with pytest.raises(CheckpointError, match=r"^train; .*resume\(folder, train="):
        resume(tmp_path / "run")
    given = {"train": TRAIN, "test": TEST, "public_text": OPEN}
    for name, less in (("train", TRAIN[1:]), ("test", TEST[1:]), ("public_text", OPEN[1:])):
        with pytest.raises(CheckpointError, match=rf"^task\.{name};"):
            resume(tmp_path / "run", **given | {name: less})
    result = resume(tmp_path / "run", **given)
    assert (result.status, texts(result.folder)) == ("complete", texts(whole.folder))
    with pytest.raises(CheckpointError, match="another") as other:
        small(tmp_path / "run")
    assert not hasattr(other.value, "__notes__")


def test_a_program_with_settings_of_its_own_by_hydra_keeps_them(tmp_path):
    (tmp_path / "simulation.yaml").write_text("mine: 1\n")
    with initialize_config_dir(str(tmp_path), version_base="1.3"):
        theirs = GlobalHydra.instance().hydra
        assert plan(labels=["a", "b"], public_text=OPEN, overrides=SMALL)["parties"] == 3
        assert GlobalHydra.instance().hydra is theirs


def test_a_method_of_a_folder_of_configurations_is_found(tmp_path):
    folder = tmp_path / "it's mine"
    (folder / "method").mkdir(parents=True)
    (folder / "method" / "mine.yaml").write_text("_target_: server.methods.fusegen.FuseGen\nname: mine\nsamples: 24\n")
    assert plan(method="mine", config_dir=folder)["queries"] == []
    with pytest.raises(ConfigError, match="mine"):
        plan(method="mine")


WRONG = [
    ({"epsilon": math.nan}, "epsilon"),
    ({"epsilon": 0}, "epsilon"),
    ({"epsilon": "4"}, "epsilon"),
    ({"epsilon": -math.inf}, "epsilon"),
    ({"delta": math.inf}, "delta"),
    ({"delta": math.nan}, "delta"),
    ({"parties": 0}, "parties"),
    ({"parties": 2.5}, "parties"),
    ({"method": "wosp"}, "method"),
    ({"overrides": "method.samples=3"}, "overrides"),
    ({"overrides": ["method.sampels=3"]}, "method.sampels"),
    ({"overrides": ["hydra.run.dir=here"]}, "overrides"),
    ({"labels": ["a"]}, "task.labels"),
    ({"labels": pd.Series(["a"])}, "task.labels"),
    ({"labels": "unlabeled"}, "labels"),
    ({"labels": ["a", "b"], "overrides": ["task.labels={c: d, e: f}"]}, "labels"),
    ({"config_dir": "no/folder"}, "config_dir"),
    ({"public_text": "A z~q sentence. " * 50}, "task.public_text"),
    ({"folder": Path(__file__)}, "folder"),
    ({"public_text": TRAIN}, "public_text"),
]
"""Arguments, and the setting that the error names."""


@pytest.mark.parametrize(("arguments", "setting"), WRONG)
def test_a_wrong_setting_is_one_short_error_of_ours(arguments, setting, tmp_path, temporary):
    with pytest.raises(ConfigError) as caught:
        simulate(**{"train": TRAIN, "test": TEST, "public_text": OPEN, "folder": tmp_path / "run"} | arguments)
    assert setting in str(caught.value.what)
    assert "\n" not in str(caught.value)
    assert "z~q" not in str(caught.value)
    text = "".join(traceback.format_exception(caught.value))
    assert "/hydra/" not in text
    assert len(text.splitlines()) < 45
    assert not list(temporary.glob("caucus-*"))


SECRET = f"{PRIVATE[3][0]} secret, and long"
TABLES = [
    (TRAIN.rename(columns={"text": "note"}), "train", "the columns note, label"),
    (TRAIN.rename(columns={"text": SECRET}), "train", "2 columns, of names that may be a record"),
    (TRAIN.rename(columns={"text": "z~q has it", "label": "z~q"}), "train", "2 columns, of names"),  # no header
    (pd.concat([TRAIN, TRAIN], axis=1), "train", "the columns text, label"),
    (TRAIN.iloc[:0], "train", "none"),
    ([], "train", "none"),
    (pd.DataFrame(), "train", "no column"),
    ([("z~q", "a"), ("text", "label")], "broken row", "the header again"),
    ([("z~q", "a"), ("z~q", "a", "more")], "row", "tuple"),
    ([{"text": "z~q", "class": "a"}], "row", "the columns text, class"),
    (["z~q"], "row", "str"),
    ({"text": ["z~q"], "label": ["a"]}, "train", "dict"),
    (5, "train", "int"),
]
"""Tables of a wrong form, with what is wrong and what was given; the faults of single values are in `VALUES`."""


@pytest.mark.parametrize("name", ["train", "test"])
def test_a_label_that_the_task_lacks_is_named_by_its_place_in_the_table(name, tmp_path):
    tables = {"train": TRAIN, "test": TEST}
    tables[name] = pd.DataFrame(tables[name]).copy()  # before pandas 3 both would share their rows
    tables[name].loc[3, "label"] = "c"
    with pytest.raises(DataError, match=rf"label; .* at {name}\.iloc\[3\]"):
        simulate(**tables, public_text=OPEN, labels=["a", "b"], folder=tmp_path / "run", overrides=SMALL)


def test_labels_alone_choose_files_as_the_task_and_any_library_s_integer_is_one(tmp_path):
    planned = plan(labels=np.array(["a", "b"]), public_text=OPEN, parties=np.int64(4), overrides=SMALL)
    assert planned["parties"] == 4
    with pytest.raises(ConfigError, match=r"^(?!task\.labels).*public"):
        plan(labels=["a", "b"], overrides=SMALL)


@pytest.mark.parametrize(("table", "what", "got"), TABLES)
def test_a_wrong_table_is_described_and_never_quoted(table, what, got, tmp_path):
    before = copy.deepcopy(table)
    with pytest.raises(DataError) as caught:
        simulate(table, public_text=OPEN, folder=tmp_path / "run")
    assert caught.value.what == what
    assert str(caught.value.got).startswith(got)
    assert "z~q" not in "".join(traceback.format_exception(caught.value)).replace("z~q = ", "")
    assert not (tmp_path / "run").exists()
    assert isinstance(caught.value, CaucusError)
    assert type(before) is type(table)


def test_tables_are_files_that_only_this_account_can_read(tmp_path):
    frame = pd.DataFrame({"text": ["a\n“b”\u2028", "c"], "label": ["x", "y"], "user": ["1", "2"], "age": [3, 4]})
    path = as_file("train", frame, LABELLED, tmp_path)
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"text": "a\n“b”\u2028", "label": "x", "user": "1"},
        {"text": "c", "label": "y", "user": "2"},
    ]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    rows = as_file("test", [Record("a", "x", user="1"), {"text": "b", "label": "y"}], LABELLED, tmp_path)
    assert [json.loads(line) for line in rows.read_text().splitlines()] == [
        {"text": "a", "label": "x", "user": "1"},
        {"text": "b", "label": "y"},
    ]
    public = as_file("public_text", [{"text": "a", "topic": "x"}, {"text": "b", "label": "y"}, "c"], PUBLIC, tmp_path)
    assert [sorted(json.loads(line)) for line in public.read_text().splitlines()] == [
        ["text", "topic"],
        ["label", "text"],
        ["text"],
    ]
    assert as_file("public", pd.DataFrame({"text": ["a"]}), PUBLIC, tmp_path).read_text() == '{"text": "a"}\n'
    assert as_file("test", os.fspath(path), LABELLED, tmp_path) == path


def test_the_page_is_shown_in_a_frame_of_its_own(tmp_path):
    (tmp_path / "report.html").write_text("<p class=\"a\">'ε' & more</p>", encoding="utf-8")
    text = Report(tmp_path / "report.html")._repr_html_()
    assert text.startswith("<iframe ")
    assert 'srcdoc="&lt;p class=&quot;a&quot;&gt;&#x27;ε&#x27; &amp; more&lt;/p&gt;"' in text
    assert 'sandbox="allow-scripts"' in text


def test_a_folder_of_anything_else_is_no_result(tmp_path):
    with pytest.raises(CheckpointError, match=r"run\.json"):
        Result.load(tmp_path)
    (tmp_path / "table.json").touch()
    with pytest.raises(CheckpointError, match=r"table\.json"):
        Result.load(tmp_path)
    assert Report(tmp_path / "report.html")._repr_html_() is None


PAGES = ("README.md", "simulations/README.md")
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PYTHON = [(page, block) for page in PAGES for block in FENCE.findall((ROOT / page).read_text("utf-8"))]


@pytest.mark.parametrize(("page", "block"), PYTHON, ids=[page for page, _ in PYTHON])
def test_what_a_readme_shows_in_python_runs(page, block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    few = ["method.samples=40", "method.rounds=2", "evaluation.metrics=[]", "federation.parties=2", LOSES]
    monkeypatch.setattr(api, "compose_settings", lambda overrides: compose_settings([*overrides, *few]))
    names = {}
    for name, file, table in (("notes", "train.csv", TRAIN), ("held_out", "test.csv", pd.DataFrame(TEST))):
        names[name] = table.replace({"label": {"a": "flu", "b": "cold"}})
        names[name].to_csv(file, index=False)
    Path("public.txt").write_text("\n".join(OPEN))
    exec(block, names)  # our own page
    assert names["result"].status == "complete"
    assert set(names["result"].texts.label) == {"flu", "cold"}
    assert len(PYTHON) == len(PAGES)


def test_the_package_is_light_until_a_function_of_it_is_used():
    code = "import sys, simulations.command; print({'torch', 'pandas', 'simulations.api.api'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
    with pytest.raises(AttributeError, match="simulates"):
        simulations.simulates  # noqa: B018


def as_records(rows):
    return [Record(row["text"], row["label"]) for row in rows]


SHAPES = {
    "a data frame": (lambda rows: pd.DataFrame(rows, dtype=object), "train.iloc[1]"),
    "mappings": (list, "train[1]"),
    "pairs": (lambda rows: [tuple(row.values()) for row in rows], "train[1]"),
    "records": (as_records, "train[1]"),
}
"""By kind of table, how it is made of rows, and the place of its second row."""
VALUES = {
    "a code like a number": ("label", "1E50", True),
    "NA": ("label", "NA", True),
    "None, as text": ("label", "None", True),
    "a number": ("label", 7, False),
    "a number with a fraction": ("label", 1.5, False),
    "true": ("label", True, False),
    "bytes": ("label", b"z~q", False),
    "None": ("label", None, False),
    "NaN": ("label", float("nan"), False),
    "an empty label": ("label", " ", False),
    "a line end": ("label", "z~q\nb", False),
    "a control character": ("label", "z~q\x1b[8m", False),
    "NUL": ("text", "z~q\0", False),
    "half a surrogate pair": ("text", "z~q\ud800", False),
    "no text": ("text", None, False),
}
"""By fault: a column, its value in the second row, and whether it is read as it is."""


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fault", VALUES)
def test_each_fault_in_each_kind_of_table_is_read_as_it_is_or_refused_by_its_place(fault, shape, tmp_path):
    column, value, is_read = VALUES[fault]
    make, place = SHAPES[shape]
    rows = [{"text": "x", "label": "a"}, {"text": "y", "label": "b"} | {column: value}, {"text": "z", "label": "a"}]
    if is_read:
        assert read_records(as_file("train", make(rows), LABELLED, tmp_path)) == as_records(rows)
        return
    with pytest.raises(DataError) as caught:
        as_file("train", make(rows), LABELLED, tmp_path)
    assert str(caught.value.where) == place
    assert "z~q" not in "".join(traceback.format_exception(caught.value))
    if column == "label" and not isinstance(value, str):
        assert "keep_default_na=False" in caught.value.do
