"""Tasks without labels from files to figures: runs on records of text alone, and all that is made of them."""

import json

import pandas as pd
import pytest

from common.domain import UNLABELLED
from common.errors import ConfigError, DataError
from server.command import main
from server.documents.run import ZERO_SHOT
from simulations import simulate
from simulations.api.result import Result
from tests.support.lanes import slow_but
from tests.support.runs import labelled, lines, read, tiny, with_columns, words_in

METHODS = {
    "wasp": (),
    "census": ("method.directions=6", "method.rounds=2"),
    "aug_pe": ("method.rounds=2",),
    "dpga": ("method.rounds=2", "method.keywords=3", "method.longest=20"),
}
NEEDED = {"fusegen": (), "rupta": ("method.rounds=1",)}


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """Overrides of a task whose files have no column of labels."""
    folder = tmp_path_factory.mktemp("data")
    overrides = labelled(folder)
    with_columns(folder, ("text",), lambda text, _: (text,))
    return ["task.labels=unlabelled" if "labels=" in override else override for override in overrides]


@pytest.fixture(scope="module", params=slow_but({"wasp", "census"}, METHODS))
def run(request, task, tmp_path_factory):
    overrides = (*task, "method.samples=40", "federation.parties=2", "evaluation.metrics=[utility,fidelity,diversity]")
    folder = tmp_path_factory.mktemp(request.param) / "run"
    return tiny(folder, f"method={request.param}", *overrides, *METHODS[request.param])


def test_no_released_text_has_a_label(run):
    released = lines(run, "synthetic.jsonl")
    assert len(released) == 40
    before = lines(run, ZERO_SHOT) if (run / ZERO_SHOT).exists() else []
    assert all("label" not in line for line in [*released, *before])
    assert list(Result.load(run).texts.columns) == ["text", "model", "round", "weight"]
    assert not (run / "classifier.json").exists()
    assert not (run / "transfer.jsonl").exists()


def test_the_report_speaks_of_nearness_and_has_no_table_by_label(run):
    facts, metrics = read(run, "report.json"), read(run, "metrics.json")
    assert facts["labels"]["rows"] == []
    assert facts["released"]["label"] == {}
    for name in ("utility", "utility_real"):
        assert "no labels" in metrics[name]["reason"]
    assert not {"synthetic", "majority_class", "real_private", "label_shares"} & metrics.keys()
    assert metrics["nearness"]["fid"]["value"] > 0
    page = (run / "report.html").read_text("utf-8")
    assert "By label" not in page
    assert f"<h3>{UNLABELLED}</h3>" not in page
    assert "wrote no" not in json.dumps(lines(run, "rounds.jsonl"))


def test_it_is_evaluated_again_on_other_texts_alone(run, tmp_path, capsys):
    (tmp_path / "own.csv").write_text("text\n" + "".join(f"A harbour and a kettle {i}.\n" for i in range(30)))
    assert main(["evaluate", str(run), "--test", str(tmp_path / "own.csv")]) == 0
    assert "distance: synthetic " in capsys.readouterr().out
    assert read(run, "metrics.json")["test_records"] == 30
    assert main(["report", str(run)]) == 0


def test_it_is_published_without_a_column_of_labels(run, tmp_path):
    import datasets
    import mlcroissant

    folder = run / "dataset"
    assert main(["publish", str(run), "--license", "cc-by-4.0"]) == 0
    loaded = datasets.load_dataset(str(folder), split="train", cache_dir=str(tmp_path / "cache"))
    assert loaded.to_list() == lines(run, "synthetic.jsonl")
    assert mlcroissant.Dataset(folder / "croissant.json").metadata.issues.errors == set()
    card = (folder / "README.md").read_text("utf-8")
    assert "text-generation" in card
    assert UNLABELLED not in card
    assert "`probabilities`" not in card


def test_a_census_of_one_population_steers_another_run(task, tmp_path):
    first = tiny(tmp_path / "first", *task, "method=census", "method.samples=40", *METHODS["census"])
    census = read(first, "census.json")
    assert len(census["sums"]) == len(census["counts"]) == 1
    figures = lines(first, "rounds.jsonl")[-1]
    assert 0 <= figures["likeness"] <= 1
    assert 0 <= figures["shrinkage"] <= 1
    assert "relabelled" not in figures
    again = tiny(tmp_path / "again", *task, "method=census", "method.samples=30", f"method.census={first}/census.json")
    assert len(lines(again, "synthetic.jsonl")) == 30
    assert read(again, "privacy.json")["spent"]["queries_asked"] == 0


@pytest.mark.parametrize("method", NEEDED)
def test_methods_that_need_labels_say_so_before_anything_is_asked(method, task, tmp_path):
    with pytest.raises(ConfigError, match=rf"^method {method};"):
        tiny(tmp_path / "run", *task, f"method={method}", "method.samples=40", "federation.parties=1", *NEEDED[method])
    assert not (tmp_path / "run" / "synthetic.jsonl").exists()


def test_a_file_with_labels_can_be_taken_as_texts_alone_and_one_without_cannot_have_labels(task, tmp_path):
    named = labelled(tmp_path / "data")
    alone = ["task.labels=unlabelled" if "labels=" in override else override for override in named]
    run = tiny(tmp_path / "run", *alone, "method.samples=40")
    assert not words_in((run / "synthetic.jsonl").read_bytes(), ["zq000 zw000"])
    with pytest.raises(DataError, match="without label"):
        tiny(tmp_path / "other", *(named[1] if "labels=" in override else override for override in task))


def test_from_python_records_may_be_texts(tmp_path):
    train = [f"zq{i:03} harbour lantern {i % 7}." for i in range(40)]
    test = pd.DataFrame({"text": [f"A kettle and a forest {i}." for i in range(20)], "label": range(20)})
    public = [f"The meadow {i} near a window {i % 5}." for i in range(60)]
    result = simulate(
        train,
        test,
        public_text=public,
        labels="unlabelled",
        method="aug_pe",
        folder=tmp_path / "run",
        overrides=["method.samples=40", "method.rounds=2", "evaluation.metrics=[]"],
    )
    assert list(result.texts.columns) == ["text", "model", "round", "weight"]
    assert "label" not in result.rounds
    assert result.metrics["nearness"]["fid"]["value"] > 0
