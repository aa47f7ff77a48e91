"""`caucus-coordinator classifier`: what it writes can be used without the run folder, and by the same encoder alone."""

import json
import shutil
import subprocess
import sys

import pytest

from common.errors import ConfigError, DataError
from common.models.encoder import Encoder
from server.command import main
from server.evaluation.text_classifier import TextClassifier
from server.prepare.build import build
from server.prepare.compose import load_settings
from tests.support.runs import read, tiny

PUBLIC = ("--public-license", "cc0-1.0")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    run = tiny(
        tmp_path_factory.mktemp("classifier") / "run", "method=class_sums", "method.samples=60", "method.rounds=2"
    )
    assert main(["classifier", str(run)]) == 0
    return run


@pytest.mark.parametrize("name", ["classifier.json", "texts.json"])
def test_both_classify_texts(run, name):
    encoder, test = build(load_settings(run).embedding), build(load_settings(run).task).held_out()
    classifier = TextClassifier.load(run / "classifier" / name, encoder)
    texts, labels = [record.text for record in test], [record.label for record in test]
    assert classifier.predict_proba(texts).shape == (len(texts), len(classifier.classes_))
    assert classifier.score(texts, labels) > 1.2 / len(classifier.classes_)
    kept = read(run / "classifier", name)
    assert (kept["privacy"]["epsilon"], kept["run"]) == (4, read(run, "run.json")["run"])


def test_the_code_on_the_card_works(run):
    card = (run / "classifier" / "README.md").read_text("utf-8")
    assert "ε = 4 and δ = 1e-5" in card
    assert "% |" in card
    code = "\n".join(line[4:] for line in card.splitlines() if line.startswith("    "))
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=run / "classifier", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


FIGURE, SHOWN = 0.7654321, {"76.5%", "76.54 ", "0.765432"}


def with_one_figure(value):
    """The same JSON, with `FIGURE` in place of each figure."""
    match value:
        case dict():
            return {key: with_one_figure(inner) for key, inner in value.items()}
        case list():
            return [with_one_figure(inner) for inner in value]
    return FIGURE if isinstance(value, float) else value


def test_each_figure_of_real_texts_on_a_card_is_said_not_to_be_protected(run, tmp_path):
    """All figures of real texts are in metrics.json: what else shows one has to say what it is."""
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    (copy / "metrics.json").write_text(json.dumps(with_one_figure(read(run, "metrics.json"))))
    assert main(["classifier", str(copy)]) == main(["publish", str(copy), "--license", "cc0-1.0", *PUBLIC]) == 0
    documents = [*(copy / "classifier").iterdir(), *(copy / "dataset").glob("*.*")]
    cards = [path for path in documents if any(figure in path.read_text("utf-8") for figure in SHOWN)]
    assert [path.relative_to(copy).as_posix() for path in cards] == ["classifier/README.md"]
    assert "Not protected:" in cards[0].read_text("utf-8")
    assert any("simulation" in item for item in read(run, "privacy.json")["not_covered"])


def test_another_encoder_and_another_file_are_refused(run, tmp_path):
    other = Encoder.hashed_ngrams(dimensions=32)
    with pytest.raises(ConfigError, match="digest"):
        TextClassifier.load(run / "classifier.json", other)
    kept = read(run, "classifier.json")
    damaged = [{"weights": "!"}, {"weights": kept["weights"][:8]}, {"intercepts": [0.0]}, {"intercepts": [None] * 4}]
    for content in ("{}", "[1", *(json.dumps(kept | change) for change in damaged)):
        (tmp_path / "classifier.json").write_text(content)
        with pytest.raises(ConfigError, match="classifier"):
            TextClassifier.load(tmp_path / "classifier.json", build(load_settings(run).embedding))
    with pytest.raises(ConfigError, match="classifier"):
        TextClassifier.load(tmp_path / "none.json", other)


def test_a_run_without_a_classifier_is_refused(tmp_path, capsys):
    run = tiny(tmp_path / "run", "method=wasp")
    assert main(["classifier", str(run)]) == 2
    assert "method=class_sums" in capsys.readouterr().err
    assert main(["classifier", str(tmp_path)]) == 2
    assert "run folder" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["classifier.json", "synthetic.jsonl", "transfer.jsonl"])
def test_damaged_files_are_one_line(run, name, tmp_path, capsys):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    (copy / name).write_text((copy / name).read_text("utf-8")[:50])
    assert main(["classifier", str(copy)]) == 2
    assert name in capsys.readouterr().err


def test_a_single_text_and_too_few_labels_are_refused(run):
    classifier = TextClassifier.load(run / "classifier.json", build(load_settings(run).embedding))
    with pytest.raises(DataError, match="sequence"):
        classifier.predict("one text")
    with pytest.raises(DataError, match="2 texts"):
        classifier.score(["a", "b"], ["x"])
