"""Texts with several labels from files to figures: runs, and all that is made of them."""

import pytest

from common.errors import ConfigError, DataError
from server.command import main
from simulations import simulate
from simulations.api.result import Result
from tests.support.runs import labelled, lines, read, tiny, with_columns

METHODS = {"wasp": ("method.rounds=2",), "census": ("method.directions=6", "method.rounds=2")}
SETS = ("a", "a;b", "b;c", "c;a;b", "b", "c")
LABELS = "{a: harbour and lantern, b: kettle and forest, c: meadow and window}"


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """Overrides of a task whose files have sets of labels, some of them longer than the plan allows."""
    folder = tmp_path_factory.mktemp("data")
    overrides = labelled(folder)
    with_columns(folder, ("text", "labels"), lambda text, number: (text, SETS[number % len(SETS)]))
    named = [f"task.labels={LABELS}" if "labels=" in override else override for override in overrides]
    return [*named, "task.labels_per_text=2"]


@pytest.fixture(scope="module", params=METHODS)
def run(request, task, tmp_path_factory):
    overrides = (*task, "method.samples=40", "federation.parties=2", "evaluation.metrics=[utility]")
    return tiny(
        tmp_path_factory.mktemp(request.param) / "run", f"method={request.param}", *overrides, *METHODS[request.param]
    )


def test_texts_figures_and_report(run):
    released = lines(run, "synthetic.jsonl")
    assert 0.8 * 40 <= len(released) <= 40  # llm.most_lost
    assert {len(line["labels"]) for line in released} == {1, 2}
    assert all("label" not in line and "probabilities" not in line for line in released)
    metrics, facts = read(run, "metrics.json"), read(run, "report.json")
    group = metrics["label_sets"]
    for figure in (group["micro_f1"], group["macro_f1"], group["difference"], metrics["label_sets_real"]["micro_f1"]):
        assert figure["interval"][0] <= figure["value"] <= figure["interval"][1]
    assert 0 <= group["pair_distance"]["value"] <= 1
    assert "several labels" in metrics["utility"]["reason"]
    assert not {"synthetic", "majority_class", "zero_shot", "nearness"} & metrics.keys()
    assert "micro F1" in facts["verdict"]["sentence"]
    assert facts["verdict"]["accuracy"]["measure"] == "micro F1"
    assert sum(facts["released"]["label"].values()) == sum(len(line["labels"]) for line in released)
    assert "micro F1 ↑" in (run / "report.html").read_text("utf-8")
    assert facts["utility"]["measure"] == "micro F1"
    statement = read(run, "privacy.json")["statement"]
    assert "up to 2" in statement
    assert not (run / "classifier.json").exists()


def test_it_is_evaluated_again_published_and_a_data_frame(run, tmp_path, capsys):
    import datasets
    import mlcroissant

    (tmp_path / "own.csv").write_text(
        "text,labels\n" + "".join(f"A harbour and a kettle {i},{SETS[i % 6]}\n" for i in range(30))
    )
    assert main(["evaluate", str(run), "--test", str(tmp_path / "own.csv")]) == 0
    assert "micro F1: synthetic " in capsys.readouterr().out
    assert read(run, "metrics.json")["test_records"] == 30
    assert main(["publish", str(run), "--license", "cc-by-4.0"]) == 0
    folder = run / "dataset"
    loaded = datasets.load_dataset(str(folder), split="train", cache_dir=str(tmp_path / "cache"))
    assert loaded.to_list() == lines(run, "synthetic.jsonl")
    described = mlcroissant.Dataset(folder / "croissant.json")
    assert described.metadata.issues.errors == set()
    assert "`labels`" in (folder / "README.md").read_text("utf-8")
    table = Result.load(run).texts
    assert list(table.columns) == ["text", "labels", "model", "round", "weight"]
    assert set(map(len, table["labels"])) == {1, 2}


def test_it_is_refused_where_it_cannot_be(task, tmp_path):
    with pytest.raises(ConfigError, match=r"^method aug_pe;"):
        tiny(tmp_path / "one", *task, "method=aug_pe", "method.samples=40")
    with pytest.raises(ConfigError, match=r"labels_per_text;.*got 4"):
        tiny(tmp_path / "three", *task, "task.labels_per_text=4")
    with pytest.raises(ConfigError, match=r"labels_per_text;"):
        tiny(tmp_path / "four", *task, "task.labels=unlabelled")
    assert not (tmp_path / "one" / "synthetic.jsonl").exists()


def test_from_python_a_table_has_lists_of_labels(tmp_path):
    train = [{"text": f"zq{i:03} harbour lantern {i % 7}.", "labels": SETS[i % 6].split(";")} for i in range(40)]
    test = [{"text": f"A kettle and a forest {i}.", "labels": SETS[i % 6].split(";")} for i in range(20)]
    public = [f"The meadow {i} near a window {i % 5}." for i in range(60)]
    small = ["method.samples=30", "method.rounds=2", "task.labels_per_text=3", "evaluation.metrics=[]"]
    result = simulate(train, test, public_text=public, method="wasp", folder=tmp_path / "run", overrides=small)
    assert set().union(*result.texts["labels"]) == {"a", "b", "c"}
    assert "micro_f1" in result.metrics["label_sets"]
    with pytest.raises(DataError, match="got list"):
        simulate([{"text": "x", "labels": ["a;b"]}], test, public_text=public, overrides=small)
