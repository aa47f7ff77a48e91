"""Texts in sections from files to figures: a run, and all that is made of it."""

import pytest

from common.errors import ConfigError
from common.sections import sections
from server.command import main
from simulations.api.result import Result
from tests.support.runs import lines, read, tiny

HEADINGS = ("Harbour", "Kettle", "Meadow")
ORDERS = ((0, 1, 2), (0, 2), (1, 0, 2))


def _text(number):
    words = ("a lantern and a pier", "some tea and a fire", "wet grass and a gate")
    parts = [
        f"{HEADINGS[at]}:\nThere was {words[at]} {number % 7}. It was seen {number % 5} times.\n"
        for at in ORDERS[number % 3]
    ]
    return f"zq{number:03}\n{''.join(parts)}"


def _file(path, count):
    path.write_text("text\n" + "".join(f'"{_text(number)}"\n' for number in range(count)))
    return path


def sections_task(folder):
    """Write the files of a task with sections; return the overrides that name them."""
    public = "".join(
        f'{{"text": "Harbour: A pier {i}.\\nKettle: The tea {i}.\\nMeadow: No gate {i}."}}\n' for i in range(30)
    )
    (folder / "public.jsonl").write_text(public)
    return [
        "task=csv",
        "task.sections={Harbour: qa, kettle: qb, Meadow: qc}",
        f"task.train={_file(folder / 'train.csv', 60)}",
        f"task.test={_file(folder / 'test.csv', 24)}",
        f"task.public_text={folder / 'public.jsonl'}",
    ]


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    of_run = ("federation.parties=2", "method=census", "method.samples=24", "method.directions=4")
    return [*sections_task(tmp_path_factory.mktemp("data")), *of_run]


@pytest.fixture(scope="module")
def run(task, tmp_path_factory):
    # At an epsilon of 4 the noise of sixty records may move a run's order further than chance alone would.
    settings = (*task, "evaluation.metrics=[utility]", "privacy.epsilon=50")
    return tiny(tmp_path_factory.mktemp("census") / "run", *settings)


def test_texts_figures_and_report(run):
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
    assert "zero_shot" in metrics
    assert "sections" in (run / "report.html").read_text("utf-8")
    assert sum(facts["released"]["label"].values()) == sum(len(line["sections"]) for line in released)
    assert "up to 3" in read(run, "privacy.json")["statement"]
    assert not (run / "classifier.json").exists()


def test_it_is_evaluated_again_published_and_a_data_frame(run, tmp_path, capsys):
    import datasets
    import mlcroissant

    assert main(["evaluate", str(run), "--test", str(_file(tmp_path / "own.csv", 9))]) == 0
    shown = capsys.readouterr().out
    assert "accuracy: synthetic " in shown
    assert "sections: synthetic " in shown
    (tmp_path / "none.csv").write_text("text\nzqx\n")
    assert main(["evaluate", str(run), "--test", str(tmp_path / "none.csv")]) != 0
    assert "record 1" in capsys.readouterr().err
    assert main(["publish", str(run), "--license", "cc-by-4.0"]) == 0
    loaded = datasets.load_dataset(str(run / "dataset"), split="train", cache_dir=str(tmp_path / "cache"))
    assert loaded.to_list() == lines(run, "synthetic.jsonl")
    assert mlcroissant.Dataset(run / "dataset" / "croissant.json").metadata.issues.errors == set()
    assert "`sections`" in (run / "dataset" / "README.md").read_text("utf-8")
    assert list(Result.load(run).texts.columns) == ["text", "model", "round", "weight", "sections"]


def test_it_is_refused_before_data_are_read(task, tmp_path):
    with pytest.raises(ConfigError, match="method wasp;"):
        tiny(tmp_path / "one", *(setting for setting in task if not setting.startswith("method")), "method=wasp")
    with pytest.raises(ConfigError, match="sections;"):
        tiny(tmp_path / "two", *task[:1], "task.sections={a: x, A: y}", "task.train=missing.csv")
