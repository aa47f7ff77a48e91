"""What is wrong with an input is one clear line and a code, or a stated and correct result; never private text."""

from functools import partial

import pytest
from hydra.errors import InstantiationException

from common.errors import CaucusError, CheckpointError, ConfigError, DataError, DropoutError, PlanError, ProviderError
from server.llm.base import Reply
from server.llm.builtin.model import BuiltinModel
from simulations import run as simulation
from simulations.federation.local_grid import LocalGrid
from tests.support.lanes import slow
from tests.support.runs import command, labelled, lines, read, resume, tiny, warm

SHORT = ("method.rounds=2", "method.samples=24", "llm.use=[broad]")


def refused(kind, folder, *overrides):
    """The line that a run ends with before anything private was asked."""
    with pytest.raises((CaucusError, InstantiationException)) as caught:
        tiny(folder / "run", *overrides)
    error = caught.value.__cause__ if isinstance(caught.value, InstantiationException) else caught.value
    assert type(error) is kind
    assert "\n" not in str(error)
    assert not list(folder.glob("run/state/*.npz"))
    return str(error)


A, B = ("zq one", "a"), ("zq two", "b")


@pytest.mark.parametrize("setting", ["train", "test"])
def test_a_wrong_row_is_named_by_setting_file_and_line(setting, tmp_path):
    message = refused(DataError, tmp_path, *labelled(tmp_path / "data", **{setting: [A, ("zq three", "c")]}))
    assert message.startswith(f"task.{setting}: unknown label;")
    assert f"{setting}.csv:3. " in message


def test_one_label_alone_is_said_of_the_file(tmp_path):
    task = [setting for setting in labelled(tmp_path / "data", train=[A]) if not setting.startswith("task.labels")]
    message = refused(DataError, tmp_path, *task)
    assert message.startswith("task.train:")
    assert "task.labels=unlabelled" in message


@pytest.mark.parametrize("setting", ["train", "test", "public_text"])
def test_a_file_that_is_not_there_is_named(setting, tmp_path):
    task = [*labelled(tmp_path / "data"), f"task.{setting}=/no/such/file.csv"]
    message = refused(DataError, tmp_path, *task)
    assert message.startswith(f"task.{setting}: ")
    assert message.endswith("/no/such/file.csv. Check its path and its permissions")


@pytest.mark.parametrize(
    ("setting", "facts"), [("train", ["task.train=PATH"]), ("public", ["task.public_text;", "llm="])]
)
def test_a_file_that_the_run_needs_and_no_setting_names_is_said(setting, facts, tmp_path):
    task = [override for override in labelled(tmp_path / "data") if not override.startswith(f"task.{setting}")]
    message = refused(ConfigError, tmp_path, *task)
    assert [fact for fact in facts if fact not in message] == []


@pytest.mark.parametrize(
    ("setting", "kind", "message"),
    [
        ("privacy.calibration=guess", ConfigError, "calibration;"),
        ("privacy.unit=patient", ConfigError, "unit;"),
        ("federation.partition=fair", ConfigError, "federation.partition;"),
        ("engine=abacus", ConfigError, "engine;"),
        ("privacy.max_records=2", PlanError, "got 2"),
        ("federation.max_attempts=20000", ConfigError, "got 40000"),
        ("client.limits.lifetime_epsilon=0", ConfigError, "lifetime_epsilon;"),
        ("client.limits.queries=[anything]", ConfigError, "queries;"),
        ("method.rounds=1", ConfigError, "method.rounds;"),
        ("method.samples=3", ConfigError, "method.samples;"),
        ("federation.records=1000000", ConfigError, "federation.records;"),
    ],
)
def test_a_wrong_choice_or_a_number_that_does_not_fit_the_run_is_named(setting, kind, message, tmp_path):
    assert message in refused(kind, tmp_path, "federation.partition=dirichlet", setting)


def test_a_class_without_records_is_said_and_gets_its_texts(tmp_path, caplog):
    task = [setting for setting in labelled(tmp_path / "data") if not setting.startswith("task.labels")]
    task.append("task.labels={a: harbour, b: kettle, c: ribbon}")
    folder = tiny(tmp_path / "run", *task, *SHORT)
    assert "1 of 3 labels" in caplog.text
    labels = [row["label"] for row in lines(folder, "synthetic.jsonl")]
    assert set(labels) == {"a", "b", "c"}
    assert len(labels) + sum(line["lost"]["broad"] for line in lines(folder, "rounds.jsonl")) == 24


def test_a_class_with_fewer_candidates_than_votes_is_stated(tmp_path, caplog):
    folder = tiny(tmp_path / "run", *labelled(tmp_path / "data"), *SHORT, "method.top=8")
    first, last = lines(folder, "rounds.jsonl")
    (note,) = first["notes"]
    assert "a has 6, b has 6" in note
    assert any("method.top=3" in said for said in caplog.messages)
    assert not last["notes"]


def test_without_a_test_file_nothing_is_measured_and_the_report_says_so(tmp_path):
    task = [setting for setting in labelled(tmp_path / "data") if not setting.startswith("task.test")]
    folder = tiny(tmp_path / "run", *task, *SHORT)
    assert read(folder, "metrics.json") == {"format": 1}
    assert "Not measured" in (folder / "report.html").read_text("utf-8")


def test_repeated_rows_labels_of_the_private_file_and_parties_without_a_record_are_stated(tmp_path, caplog):
    rows = [A, B, A, A, ("zq three", "b")]
    task = [setting for setting in labelled(tmp_path / "data", train=rows) if not setting.startswith("task.labels")]
    folder = tiny(tmp_path / "run", *task, *SHORT, "federation.parties=7", "federation.partition=iid", "method.top=6")
    for fact in ("2 rows of the training file", "2 labels taken", "simulation only", "2 of 7 parties"):
        assert fact in caplog.text
    assert read(folder, "metrics.json")["real_private"]["records"] == 5  # a row that is repeated votes each time
    assert {row["label"] for row in lines(folder, "synthetic.jsonl")} == {"a", "b"}
    assert lines(folder, "rounds.jsonl")[0]["queries"][0]["survivors"] == 7  # noise alone is an answer too


def without(*parties):
    """A grid on which these parties hear nothing of a query."""
    return partial(LocalGrid, on_request=lambda partition, message: () if partition in parties else (message,))


def test_a_dropout_within_the_plan_is_stated(tmp_path, monkeypatch):
    monkeypatch.setattr(simulation, "LocalGrid", without(2))
    allowed = ("federation.parties=4", "federation.max_dropouts=1", "federation.timeout=0.1")
    folder = tiny(tmp_path / "run", *SHORT, *allowed)
    (query,) = lines(folder, "rounds.jsonl")[0]["queries"]
    assert (query["index"], query["survivors"], query["parties"]) == (0, 3, 4)
    assert len(lines(folder, "synthetic.jsonl")) == 24


def test_more_dropouts_than_the_plan_allows_stop_the_run_and_resuming_goes_on(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(simulation, "LocalGrid", without(1, 2))
        message = refused(
            DropoutError,
            tmp_path,
            *SHORT,
            "federation.parties=4",
            "federation.max_dropouts=1",
            "federation.timeout=0.1",
        )
    assert "; got 2" in message
    resume(tmp_path / "run")
    assert read(tmp_path / "run", "run.json")["status"] == "complete"


def model(monkeypatch, texts):
    """A language model that answers each request with what `texts` makes of it."""

    def generate(self, requests, *, arrived=None):
        replies = [Reply(texts=texts(self, request), input_tokens=1, output_tokens=1) for request in requests]
        for place, reply in enumerate(replies if arrived else ()):
            arrived(place, reply)
        return replies

    monkeypatch.setattr(BuiltinModel, "generate", generate)


@pytest.mark.parametrize("blank", [(), ("  \n",)], ids=["nothing", "blanks"])
def test_a_model_that_returns_no_text_stops_the_run_before_anything_private(blank, tmp_path, monkeypatch):
    model(monkeypatch, lambda _, request: blank * request.n)
    assert refused(ProviderError, tmp_path, *SHORT).startswith("language models;")


def test_a_run_stops_above_the_share_of_lost_texts_that_its_settings_allow(tmp_path, monkeypatch):
    model(monkeypatch, lambda _, request: (request.labels[0][0],))  # one text of each label, again and again
    asked = (*SHORT, "method.samples=80")
    assert "llm.most_lost" in refused(ProviderError, tmp_path, *asked, "llm.most_lost=0.2")
    assert len(lines(tiny(tmp_path / "allowed", *asked, "llm.most_lost=1"), "synthetic.jsonl")) < 80


def test_a_model_that_returns_too_little_is_stated(tmp_path, monkeypatch):
    model(monkeypatch, lambda self, request: (f"{request.seed}",) if self.name == "broad" else ())
    folder = tiny(tmp_path / "run", "method.rounds=2", "method.samples=48", "llm.use=[broad,noisy]")
    first = lines(folder, "rounds.jsonl")[0]
    written = first["candidates"]
    assert 12 < written < 24
    assert (first["generated"], first["lost"]) == ({"broad": written, "noisy": 0}, {"broad": 0, "noisy": 12})
    assert first["requested"] == {"broad": written, "noisy": 12}
    assert len(lines(folder, "synthetic.jsonl")) < 48


def test_a_model_that_fails_ends_the_command_with_its_line_and_how_to_go_on(tmp_path, monkeypatch):
    def failing(self, requests, *, arrived=None):
        raise ProviderError("the language model is away", do="Try again later")

    warm()
    monkeypatch.setattr(BuiltinModel, "generate", failing)
    code, output = command(tmp_path, "task=demo_notes", "task.public_notes=60", f"hydra.run.dir={tmp_path}/run")
    assert code == 1
    assert "caucus-simulate: " in output
    assert f"--resume {tmp_path}/run" in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["privacy.epsilon=0"], "privacy.epsilon;"),
        (["task=csv", "task.train=/no/such.csv"], "task.train:"),
        (["embedding=pretrained"], "embedding.name_or_path"),
        slow(["embedding=pretrained", "embedding.name_or_path=/no/such"], "encoder;"),
        (["method.samples=many"], "method.samples;"),
        (["privacy.epsilo=1"], "mean privacy.epsilon?"),
        (["method=waps"], "mean wasp?"),
        (["--multirun", "privacy.epsilon=1", "method=wasp,waps"], "mean wasp?"),
        (["client.limits.max_top=0"], "client.limits.max_top"),
        (["--epsilon=4"], "privacy.epsilon=4"),
        slow(["method=wasp", "--multirum"], "mean --multirun?"),
        (["--resume"], "no run is named to resume;"),
        slow(["--resume", "/no/such/folder"], "there is no config.yaml to resume from;"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_command_ends_with_one_clear_line_and_the_code_of_wrong_input(arguments, named, tmp_path):
    folder = [] if "--resume" in arguments else [f"hydra.run.dir={tmp_path}/run"]
    code, output = command(tmp_path, *arguments, *folder)
    assert code == 2
    assert named in output
    assert "Traceback" not in output
    assert "goes on" not in output


def test_a_model_without_its_key_is_a_failure_that_names_the_variable(tmp_path, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    code, output = command(tmp_path, "llm=anthropic", f"hydra.run.dir={tmp_path}/run")
    assert code == 1
    assert "ANTHROPIC_API_KEY" in output
    assert "Traceback" not in output


@pytest.mark.parametrize("name", simulation.OUTPUTS)
def test_a_file_of_no_run_in_the_run_s_folder_is_not_replaced(name, tmp_path):
    for written in (name, "config.yaml"):
        (tmp_path / written).write_text("mine")
    with pytest.raises(CheckpointError, match=name):
        tiny(tmp_path, "run=mine")
    assert (tmp_path / name).read_text() == "mine"


@pytest.mark.parametrize("settings", [b"\xff", b"[run]", b"run: [", b"7", b"run: another"])
def test_another_program_s_settings_make_no_run_of_a_folder(settings, tmp_path):
    (tmp_path / "config.yaml").write_bytes(settings)
    (tmp_path / "metrics.json").write_text("mine")
    with pytest.raises(CheckpointError, match="run folder"):
        tiny(tmp_path, "run='7'")
    assert (tmp_path / "metrics.json").read_text() == "mine"
    assert (tmp_path / "config.yaml").read_bytes() == settings
