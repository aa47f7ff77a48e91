"""Texts with several labels, without labels and in sections: runs from files to figures, and what is made of them."""

import json

import pandas as pd
import pytest

from common.domain import UNLABELLED
from common.errors import ConfigError, DataError
from common.sections import sections
from server.command import main
from server.documents.run import ZERO_SHOT
from simulations import simulate
from simulations.api.result import Result
from tests.support.lanes import slow
from tests.support.runs import (
    labelled,
    labelled_by_sets,
    lines,
    read,
    sections_task,
    text_in_sections,
    tiny,
    unlabelled,
    words_in,
)

SETS = ("a", "a;b", "b;c", "c;a;b", "b", "c")
METHODS = {
    "wasp": ("method.rounds=2",),
    "class_sums": ("method.directions=6", "method.rounds=2"),
    "aug_pe": ("method.rounds=2",),
    "dpga": ("method.rounds=2", "method.keywords=3", "method.longest=20"),
}
CASES = {
    "sets": ("wasp", "class_sums"),
    "unlabelled": ("wasp", "class_sums", "aug_pe", "dpga"),
    "sections": ("class_sums",),
}
SLOW = {"aug_pe", "dpga"}
COLUMNS = {
    "sets": ["text", "labels", "model", "round", "weight"],
    "unlabelled": ["text", "model", "round", "weight"],
    "sections": ["text", "model", "round", "weight", "sections"],
}
OWN = {
    "sets": ("text,labels\n" + "".join(f"A harbour and a kettle {i},{SETS[i % 6]}\n" for i in range(30)), 30),
    "unlabelled": ("text\n" + "".join(f"A harbour and a kettle {i}.\n" for i in range(30)), 30),
    "sections": ("text\n" + "".join(f'"{text_in_sections(i)}"\n' for i in range(9)), 24),
}
"""By kind, a file of other test texts, and how many records it has for a classifier."""
FIGURE = {"sets": "micro F1", "unlabelled": "distance", "sections": "sections"}


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """Overrides of each kind of task; some sets of labels are longer than the plan allows."""
    folders = {kind: tmp_path_factory.mktemp(kind) for kind in CASES}
    labels = "task.labels={a: harbour and lantern, b: kettle and forest, c: meadow and window}"
    return {
        # The other models repeat themselves, and so lose texts.
        "sets": [*labelled_by_sets(folders["sets"], SETS), labels, "task.labels_per_text=2", "llm.use=[broad]"],
        "unlabelled": unlabelled(folders["unlabelled"]),
        # At an epsilon of 4 the noise of sixty records may move a run's order further than chance alone would.
        "sections": [*sections_task(folders["sections"]), "privacy.epsilon=50"],
    }


@pytest.fixture(scope="module")
def runs(tasks, tmp_path_factory):
    """Return a function that makes a run of a kind by a method, once."""
    made = {}

    def run(kind, method):
        if (kind, method) not in made:
            size = ("method.samples=24", "method.directions=4") if kind == "sections" else METHODS[method]
            metrics = "utility,fidelity,diversity" if kind == "unlabelled" else "utility"
            asked = (f"method={method}", "method.samples=40", "federation.parties=2", f"evaluation.metrics=[{metrics}]")
            made[kind, method] = tiny(tmp_path_factory.mktemp(method) / "run", *tasks[kind], *asked, *size)
        return made[kind, method]

    return run


def cases(*kinds):
    """Return a case for each method of these kinds."""
    named = [(kind, method) for kind in kinds for method in CASES[kind]]
    return pytest.mark.parametrize(("kind", "method"), [slow(*case) if case[1] in SLOW else case for case in named])


@cases("sets")
def test_texts_with_several_labels_have_figures_by_set_and_no_class(kind, method, runs):
    run = runs(kind, method)
    released = lines(run, "synthetic.jsonl")
    assert 0.8 * 40 <= len(released) <= 40
    assert {len(line["labels"]) for line in released} == {1, 2}
    assert all("label" not in line and "probabilities" not in line for line in released)
    metrics, facts = read(run, "metrics.json"), read(run, "report.json")
    group = metrics["label_sets"]
    for figure in (group["micro_f1"], group["macro_f1"], group["difference"], metrics["label_sets_real"]["micro_f1"]):
        assert figure["interval"][0] <= figure["value"] <= figure["interval"][1]
    assert 0 <= group["pair_distance"]["value"] <= 1
    assert "several labels" in metrics["utility"]["reason"]
    assert not {"synthetic", "majority_class", "zero_shot", "nearness"} & metrics.keys()
    assert facts["verdict"]["accuracy"]["measure"] == facts["utility"]["measure"] == "micro F1"
    assert sum(facts["released"]["label"].values()) == sum(len(line["labels"]) for line in released)
    assert "up to 2" in read(run, "privacy.json")["statement"]
    assert not (run / "classifier.json").exists()


@cases("unlabelled")
def test_texts_without_labels_have_figures_of_nearness_and_no_label_anywhere(kind, method, runs):
    run = runs(kind, method)
    released, metrics, facts = lines(run, "synthetic.jsonl"), read(run, "metrics.json"), read(run, "report.json")
    assert len(released) == 40
    before = lines(run, ZERO_SHOT) if (run / ZERO_SHOT).exists() else []
    assert all("label" not in line for line in [*released, *before])
    assert not [name for name in ("classifier.json", "transfer.jsonl") if (run / name).exists()]
    assert (facts["labels"]["rows"], facts["released"]["label"]) == ([], {})
    for name in ("utility", "utility_real"):
        assert "no labels" in metrics[name]["reason"]
    assert not {"synthetic", "majority_class", "real_private", "label_shares"} & metrics.keys()
    assert metrics["nearness"]["fid"]["value"] > 0
    page = (run / "report.html").read_text("utf-8")
    assert "By label" not in page
    assert f"<h3>{UNLABELLED}</h3>" not in page
    assert "wrote no" not in json.dumps(lines(run, "rounds.jsonl"))


def test_texts_in_sections_have_their_places_and_figures_of_order(runs):
    run = runs("sections", "class_sums")
    released, metrics, facts = lines(run, "synthetic.jsonl"), read(run, "metrics.json"), read(run, "report.json")
    assert len(released) == 24
    for line in released:
        assert {"label", "labels", "probabilities"}.isdisjoint(line)
        found = sections(line["text"], ("Harbour", "kettle", "Meadow"))
        assert [(part.start, part.end, part.heading) for part in found] == [
            (part["start"], part["end"], part["heading"]) for part in line["sections"]
        ]
        for part in found:  # by the headings of the public texts, as no description shares a word with them
            own = {"Harbour": "pier", "kettle": "tea", "Meadow": "gate"}[part.heading]
            assert {word for word in ("pier", "tea", "gate") if word in line["text"][part.start : part.end]} == {own}
    group = metrics["sections"]
    assert group["order_distance"]["interval"][0] <= group["order_distance"]["value"] < group["independent"]["value"]
    assert 0 < group["plan_order"]["value"] < 1
    assert group["per_text_real"]["value"] == pytest.approx(8 / 3)
    assert metrics["utility"]["accuracy"]["value"] > 0.8  # headings as labels
    assert metrics["test_records"] == 24 * 8 // 3
    assert sum(facts["released"]["label"].values()) == sum(len(line["sections"]) for line in released)
    assert "up to 3" in read(run, "privacy.json")["statement"]
    assert not (run / "classifier.json").exists()


@cases(*CASES)
def test_a_run_is_evaluated_again_published_and_a_data_frame(kind, method, runs, tmp_path, capsys):
    import datasets
    import mlcroissant

    run, folder = runs(kind, method), runs(kind, method) / "dataset"
    content, records = OWN[kind]
    (tmp_path / "own.csv").write_text(content)
    assert main(["evaluate", str(run), "--test", str(tmp_path / "own.csv")]) == 0
    assert f"\n{FIGURE[kind]}:" in capsys.readouterr().out
    assert read(run, "metrics.json")["test_records"] == records
    assert main(["publish", str(run), "--license", "cc-by-4.0"]) == 0
    loaded = datasets.load_dataset(str(folder), split="train", cache_dir=str(tmp_path / "cache"))
    assert loaded.to_list() == lines(run, "synthetic.jsonl")
    assert mlcroissant.Dataset(folder / "croissant.json").metadata.issues.errors == set()
    card = (folder / "README.md").read_text("utf-8")
    assert UNLABELLED not in card
    assert [f"`{name}`" in card for name in ("labels", "sections")] == [kind == "sets", kind == "sections"]
    assert list(Result.load(run).texts.columns) == COLUMNS[kind]


def test_class_sums_of_one_population_steer_another_run(runs, tasks, tmp_path):
    first, figures = runs("unlabelled", "class_sums"), lines(runs("unlabelled", "class_sums"), "rounds.jsonl")[-1]
    released = read(first, "census.json")
    assert len(released["sums"]) == len(released["counts"]) == 1
    assert 0 <= figures["likeness"] <= 1
    assert 0 <= figures["shrinkage"] <= 1
    steered = ("method=class_sums", "method.samples=30", f"method.census={first}/census.json")
    again = tiny(tmp_path / "again", *tasks["unlabelled"], *steered)
    assert len(lines(again, "synthetic.jsonl")) == 30
    assert read(again, "privacy.json")["spent"]["queries_asked"] == 0


@pytest.mark.parametrize(
    ("kind", "overrides", "message"),
    [
        ("sets", ("method=aug_pe",), r"^method aug_pe;"),
        ("sets", ("task.labels_per_text=4",), r"labels_per_text;.*got 4"),
        ("sets", ("task.labels=unlabelled",), r"labels_per_text;"),
        ("unlabelled", ("method=fusegen",), r"^method fusegen;"),
        ("unlabelled", ("method=rupta", "method.rounds=1", "federation.parties=1"), r"^method rupta;"),
        ("sections", ("method=wasp",), r"^method wasp;"),
        ("", ("task=csv", "task.sections={a: x, A: y}", "task.train=missing.csv"), r"sections;"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_asked(kind, overrides, message, tasks, tmp_path):
    with pytest.raises(ConfigError, match=message):
        tiny(tmp_path / "run", *tasks.get(kind, ()), *overrides)
    assert not (tmp_path / "run" / "synthetic.jsonl").exists()


def test_a_file_with_labels_can_be_taken_as_texts_alone_and_one_without_cannot_have_labels(tasks, tmp_path):
    named = labelled(tmp_path / "data")
    run = tiny(tmp_path / "run", *named, "task.labels=unlabelled", "method.samples=40")
    assert not words_in((run / "synthetic.jsonl").read_bytes(), ["zq000 zw000"])
    with pytest.raises(DataError, match="no column label"):
        tiny(tmp_path / "other", *tasks["unlabelled"], named[1])


def test_an_own_test_file_without_sections_is_named_by_its_record(runs, tmp_path, capsys):
    (tmp_path / "none.csv").write_text("text\nzqx\n")
    assert main(["evaluate", str(runs("sections", "class_sums")), "--test", str(tmp_path / "none.csv")]) != 0
    assert "record 1" in capsys.readouterr().err


def test_from_python_a_table_has_lists_of_labels_or_texts_alone(tmp_path):
    texts = [f"zq{i:03} harbour lantern {i % 7}." for i in range(40)]
    sets = [{"text": text, "labels": SETS[i % 6].split(";")} for i, text in enumerate(texts)]
    test = [{"text": f"A kettle and a forest {i}.", "labels": SETS[i % 6].split(";")} for i in range(20)]
    public = [f"The meadow {i} near a window {i % 5}." for i in range(60)]
    small = ["method.samples=40", "method.rounds=2", "evaluation.metrics=[]"]
    of_sets = [*small, "task.labels_per_text=3"]
    result = simulate(sets, test, public_text=public, method="wasp", folder=tmp_path / "sets", overrides=of_sets)
    assert set().union(*result.texts["labels"]) == {"a", "b", "c"}
    assert "micro_f1" in result.metrics["label_sets"]
    with pytest.raises(DataError, match="got list"):
        simulate([{"text": "x", "labels": ["a;b"]}], test, public_text=public, overrides=of_sets)
    held_out = pd.DataFrame({"text": [record["text"] for record in test], "label": range(20)})
    alone = {"labels": "unlabelled", "method": "aug_pe", "folder": tmp_path / "alone", "overrides": small}
    result = simulate(texts, held_out, public_text=public, **alone)
    assert list(result.texts.columns) == COLUMNS["unlabelled"]
    assert "label" not in result.rounds
    assert result.metrics["nearness"]["fid"]["value"] > 0
