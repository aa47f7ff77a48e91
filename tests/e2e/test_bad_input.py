"""What is wrong with an input is one clear line and a code, or a stated and correct result; never private text."""

from functools import partial

import pytest
from hydra.errors import InstantiationException

from common.errors import CaucusError, ConfigError, DataError, DropoutError, PlanError, ProviderError
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


@pytest.mark.parametrize(
    ("file", "rows", "message"),
    [
        ("train", [A, B, ("zq three", "c")], "task.train: unknown label; LABEL DIR/train.csv:4"),
        ("test", [A, ("zq three", "c")], "task.test: unknown label; LABEL DIR/test.csv:3"),
        ("train", [A, ("", "b")], "task.train: empty text; at DIR/train.csv:3. Fill it in or remove the row."),
        ("train", [A, (" \t", "b"), B], "task.train: empty text; at DIR/train.csv:3. Fill it in or remove the row."),
        ("train", [A, ("zq two", "")], "task.train: empty label; at DIR/train.csv:3. Fill it in or remove the row."),
        ("train", [A, B, ("zq", "a", "b")], "task.train: broken CSV row; FIELDS got 3; at DIR/train.csv:4"),
        ("train", [A, ("zq",)], "task.train: broken CSV row; FIELDS got 1; at DIR/train.csv:3"),
    ],
    ids=["label", "test label", "empty", "blank", "no label", "three fields", "one field"],
)
def test_a_wrong_row_is_named_by_file_and_line(file, rows, message, tmp_path):
    task = labelled(tmp_path / "data", **{file: rows})
    message = message.replace("LABEL", "expected one of a, b; got another (not shown); at")
    message = message.replace("FIELDS", "expected 2 fields as in the header;").replace("DIR", str(tmp_path / "data"))
    assert refused(DataError, tmp_path, *task) == message


def test_an_open_quote_is_named_by_its_line(tmp_path):
    task = labelled(tmp_path / "data")
    with (tmp_path / "data" / "train.csv").open("a") as file:
        file.write('"zq never closed,a\n')
    message = refused(DataError, tmp_path, *task)
    assert message.startswith("task.train: broken CSV row; expected quotes that are closed and doubled inside")
    assert message.endswith("got a quote that is never closed; at " + str(tmp_path / "data" / "train.csv:42"))


NAMED = "The first line has to name the columns, among them text and label."
SHEET = "Export the sheet as CSV in UTF-8, in Excel as CSV UTF-8."


@pytest.mark.parametrize("setting", ["train", "test"])
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.csv",
            "review,stars\n",
            f"COLUMNS the columns review, stars, without text, without label; at FILE:1. {NAMED}",
        ),
        ("a.csv", "text;label\n", "the file holds no data; expected at least one row; at FILE:1"),
        ("a.csv", "Zebulon coughs,flu\n", f"COLUMNS 2 columns, without text, without label; at FILE:1. {NAMED}"),
        ("a.csv", "PK\x03\x04", f"not UTF-8; ENCODING an Excel file or another ZIP archive; at FILE:1. {SHEET}"),
        ("a.xlsx", "", f"unknown kind of file; ENDING .xlsx; at FILE. {SHEET}"),
        ("", None, "the file cannot be read; expected a file; got a folder; at FILE"),
    ],
    ids=["other names", "semicolons", "no header", "Excel as .csv", "Excel", "folder"],
)
def test_a_file_that_is_no_table_of_text_and_label_is_told_with_its_setting(setting, name, content, message, tmp_path):
    (tmp_path / "other").mkdir()
    path = tmp_path / "other" / name
    if content is not None:
        path.write_text(content)
    for short, long in (
        ("COLUMNS", "missing column; expected a header with text and label, each once; got"),
        ("ENCODING", "expected text in UTF-8; got"),
        ("ENDING", "expected a name that ends in .csv or .jsonl or .parquet or .json or .ndjson; got"),
        ("FILE", str(path)),
    ):
        message = message.replace(short, long)
    task = [*labelled(tmp_path / "data"), f"task.{setting}={path}"]
    assert refused(DataError, tmp_path, *task) == f"task.{setting}: {message}"


def test_private_texts_are_no_public_text_in_a_copy_either(tmp_path):
    task = labelled(tmp_path / "data")
    (tmp_path / "data" / "copy.csv").write_bytes((tmp_path / "data" / "train.csv").read_bytes())
    message = refused(ConfigError, tmp_path, *task, f"task.public_text={tmp_path}/data/copy.csv")
    assert message.startswith("task.public_text; expected text that is public; got 40 of 40 private texts, those of ")


def test_one_label_alone_is_said_of_the_file(tmp_path):
    task = [setting for setting in labelled(tmp_path / "data", train=[A]) if not setting.startswith("task.labels")]
    message = refused(DataError, tmp_path, *task)
    place = f"{tmp_path}/data/train.csv"
    assert message == (
        f"task.train: labels; expected at least two; got 1; at {place}. task.labels=unlabelled makes all texts one "
        "population"
    )


@pytest.mark.parametrize("setting", ["train", "test", "public_text"])
def test_a_file_that_is_not_there_is_named(setting, tmp_path):
    task = [*labelled(tmp_path / "data"), f"task.{setting}=/no/such/file.csv"]
    message = refused(DataError, tmp_path, *task)
    reason = "expected a readable file; got No such file or directory; at /no/such/file.csv"
    assert message == f"task.{setting}: the file cannot be read; {reason}"


def test_no_private_file_at_all_is_said(tmp_path):
    task = [setting for setting in labelled(tmp_path / "data") if not setting.startswith("task.train")]
    assert refused(ConfigError, tmp_path, *task).endswith("Set task.train=PATH")


def test_no_public_text_for_the_embedded_models_is_said(tmp_path):
    task = [setting for setting in labelled(tmp_path / "data") if not setting.startswith("task.public")]
    message = refused(ConfigError, tmp_path, *task)
    assert "task.public_text; expected a file" in message
    assert "llm=anthropic" in message


@pytest.mark.parametrize(
    ("setting", "kind", "message"),
    [
        ("privacy.epsilon=0", ConfigError, "epsilon; expected a number > 0, or inf"),
        ("privacy.epsilon=nan", ConfigError, "privacy.epsilon; expected a number, or inf; got nan"),
        ("privacy.epsilon=-1", ConfigError, "epsilon; expected a number > 0, or inf"),
        ("privacy.epsilon=-.inf", ConfigError, "epsilon; expected a number > 0, or inf"),
        ("privacy.delta=0", ConfigError, "delta; expected a number strictly between 0 and 1"),
        ("privacy.delta=nan", ConfigError, "privacy.delta; expected a number, or inf; got nan"),
        ("privacy.calibration=guess", ConfigError, "calibration; expected one of tight, paper; got 'guess'"),
        ("privacy.unit=patient", ConfigError, "unit; expected one of sample, user; got 'patient'"),
        ("privacy.max_records=2", PlanError, "expected 1 at sample level; got 2"),
        ("federation.max_attempts=0", ConfigError, "max_attempts; expected an integer >= 1; got 0"),
        ("federation.retries=-1", ConfigError, "retries; expected an integer >= 0; got -1"),
        ("federation.timeout=-1", ConfigError, "timeout; expected a finite number >= 0; got -1"),
        ("federation.max_attempts=20000", ConfigError, "attempts included; expected a number in [0, 10000]; got 40000"),
        ("client.limits.lifetime_epsilon=0", ConfigError, "lifetime_epsilon; expected a finite number > 0, or null"),
        ("client.limits.queries=[anything]", ConfigError, "queries; expected one of votes, label histogram"),
        ("method.rounds=1", ConfigError, "method.rounds; expected at least 2: the private votes of a round guide"),
        ("method.samples=3", ConfigError, "method.samples; expected one text for each of 4 labels"),
        ("federation.records=1000000", ConfigError, "federation.records; expected 1 to 48"),
        ("federation.alpha=0", ConfigError, "alpha; expected a finite number > 0"),
        ("federation.partition=fair", ConfigError, "federation.partition; expected one of natural, dirichlet, iid"),
        ("federation.parties=0", ConfigError, "federation.parties; expected an integer >= 1"),
        ("engine=abacus", ConfigError, "engine; expected one of local, flower; got 'abacus'"),
    ],
)
def test_a_wrong_setting_is_named(setting, kind, message, tmp_path):
    others = ["federation.partition=dirichlet"] if "partition" not in setting else []
    assert message in refused(kind, tmp_path, setting, *others)


def test_a_class_without_records_is_said_and_gets_its_texts(tmp_path, caplog):
    task = [setting for setting in labelled(tmp_path / "data") if not setting.startswith("task.labels")]
    task.append("task.labels={a: harbour, b: kettle, c: ribbon}")
    folder = tiny(tmp_path / "run", *task, *SHORT, "llm.most_lost=1")
    assert "1 of 3 labels have no record: their votes are noise alone" in caplog.text
    labels = [row["label"] for row in lines(folder, "synthetic.jsonl")]
    assert set(labels) == {"a", "b", "c"}
    assert len(labels) + sum(line["lost"]["broad"] for line in lines(folder, "rounds.jsonl")) == 24


def test_a_class_with_fewer_candidates_than_votes_is_stated(tmp_path, caplog):
    folder = tiny(tmp_path / "run", *labelled(tmp_path / "data"), *SHORT, "method.top=8")
    first, last = lines(folder, "rounds.jsonl")
    (note,) = first["notes"]
    assert "fewer than 16 candidates" in note
    assert "a has 6, b has 6" in note
    (start,) = [said for said in caplog.messages if "at most 6 candidates of each label" in said]
    assert "method.top=3" in start
    assert not last["notes"]


def test_without_a_test_file_nothing_is_measured_and_the_report_says_so(tmp_path):
    task = [setting for setting in labelled(tmp_path / "data") if not setting.startswith("task.test")]
    folder = tiny(tmp_path / "run", *task, *SHORT)
    assert read(folder, "metrics.json") == {"format": 1}
    assert "Not measured" in (folder / "report.html").read_text("utf-8")


def test_repeated_rows_are_stated_and_vote(tmp_path, caplog):
    rows = [A, B, A, A, ("zq three", "b")]
    folder = tiny(tmp_path / "run", *labelled(tmp_path / "data", train=rows), *SHORT)
    assert "2 rows of the training file repeat others, and each votes" in caplog.text
    assert read(folder, "metrics.json")["real_private"]["records"] == 5


def test_parties_without_a_record_are_stated_and_add_noise(tmp_path, caplog):
    rows = [A, B]
    task = labelled(tmp_path / "data", train=rows)
    folder = tiny(tmp_path / "run", *task, *SHORT, "federation.parties=5", "federation.partition=iid", "method.top=6")
    assert "3 of 5 parties have no record: they contribute noise alone" in caplog.text
    assert lines(folder, "rounds.jsonl")[0]["queries"][0]["survivors"] == 5


def test_labels_from_the_private_file_are_taken_in_simulation_only_and_said(tmp_path, caplog):
    task = [setting for setting in labelled(tmp_path / "data") if not setting.startswith("task.labels")]
    folder = tiny(tmp_path / "run", *task, *SHORT)
    assert "2 labels taken from the private training file: simulation only" in caplog.text
    assert {row["label"] for row in lines(folder, "synthetic.jsonl")} == {"a", "b"}


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
    assert message.startswith("too few parties")
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


def test_a_model_that_returns_nothing_stops_the_run_before_anything_private(tmp_path, monkeypatch):
    model(monkeypatch, lambda *_: ())
    message = refused(ProviderError, tmp_path, *SHORT)
    assert message.startswith("language models; expected at least one text for each label; got none for ")


def test_a_model_that_returns_blanks_does_as_well(tmp_path, monkeypatch):
    model(monkeypatch, lambda _, request: ("  \n",) * request.n)
    assert "got none for" in refused(ProviderError, tmp_path, *SHORT)


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
    assert "caucus-simulate: the language model is away. Try again later" in output
    assert f"caucus-simulate --resume {tmp_path}/run goes on." in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["privacy.epsilon=0"], "caucus-simulate: privacy.epsilon; expected a number > 0, or inf; got 0.0"),
        (
            ["task=csv", "task.train=/no/such.csv"],
            "caucus-simulate: task.train: the file cannot be read; expected a readable file; got No such file",
        ),
        slow(
            ["task=csv"], "caucus-simulate: task; expected private records to deal out; got none. Set task.train=PATH"
        ),
        slow(["method.rounds=1"], "caucus-simulate: method.rounds; expected at least 2"),
        (["embedding=pretrained"], "embedding.name_or_path"),
        slow(
            ["embedding=pretrained", "embedding.name_or_path=/no/such"], "caucus-simulate: encoder; expected a folder"
        ),
        (["method.samples=many"], "caucus-simulate: method.samples; expected a whole number; got 'many'"),
        (
            ["no_such_setting=1"],
            "caucus-simulate: no_such_setting; got an unknown setting",
        ),
        (
            ["privacy.epsilo=1"],
            "got an unknown setting. Did you mean privacy.epsilon?",
        ),
        (["method=waps"], "rupta, wasp; got 'waps'. Did you mean wasp?"),
        (["engine=flowr"], "caucus-simulate: engine; expected one of local, flower; got 'flowr'. Did you mean flower?"),
        slow(
            ["privacy.unit=smaple"],
            "caucus-simulate: privacy.unit; expected one of sample, user; got 'smaple'. Did you",
        ),
        slow(["method.samples=0"], "caucus-simulate: method.samples; expected an integer >= 1; got 0"),
        (["--multirun", "privacy.epsilon=1", "method=wasp,waps"], "Did you mean wasp?"),
        (["client.limits.max_top=0"], "got 0; at client.limits.max_top (configs/client.yaml)"),
        (
            ["--epsilon=4"],
            (
                "caucus-simulate: --epsilon; got an unknown option. Settings are written without dashes: "
                "privacy.epsilon=4"
            ),
        ),
        (["method=wasp", "--multirum"], "got an unknown option. Did you mean --multirun?"),
        (["--resume"], "caucus-simulate: --resume; expected one folder with a config.yaml"),
        slow(["--resume", "/no/such/folder"], "caucus-simulate: --resume; expected one folder with a config.yaml"),
        slow(["--resume", "a", "b"], "caucus-simulate: --resume; expected one folder with a config.yaml"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_command_ends_with_one_clear_line_and_the_code_of_wrong_input(arguments, message, tmp_path):
    folder = [] if "--resume" in arguments else [f"hydra.run.dir={tmp_path}/run"]
    code, output = command(tmp_path, *arguments, *folder)
    assert code == 2
    assert message in output
    assert "Traceback" not in output
    assert "goes on" not in output


def test_a_model_without_its_key_is_a_failure_that_names_the_variable(tmp_path, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    code, output = command(tmp_path, "llm=anthropic", f"hydra.run.dir={tmp_path}/run")
    assert code == 1
    assert "ANTHROPIC_API_KEY" in output
    assert "Traceback" not in output
