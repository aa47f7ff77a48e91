import pytest

from simulations.laboratory.benchmarks.encoders import main, nearest_agreement
from tests.support.asking import unit
from tests.support.tiny_models import tiny_transformer


def _files(folder):
    rows = [("fever and cough", "chest"), ("cough and fever and fever", "chest"), ("swollen ankles", "legs")] * 4
    for name in ("train.csv", "test.csv"):
        (folder / name).write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    return [str(folder / "train.csv"), str(folder / "test.csv")]


def test_a_line_for_each_encoder_with_agreement_accuracy_and_speeds(tmp_path, capsys):
    saved = tiny_transformer(tmp_path)
    names = ("hashed_ngrams", str(saved), f"torch:{saved}")
    main([*_files(tmp_path), *(f"--encoder={name}" for name in names)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("12 training and 12 test texts")
    assert lines[1].split()[:4] == ["encoder", "dimensions", "nearest", "regression"]
    assert lines[1].split()[4:] == ["3", "words"] * 3
    ngrams, other, by_torch = (line.split() for line in lines[2:])
    assert ngrams[:4] == ["hashed_ngrams", "256", "1.000", "1.000"]
    assert other[:2] == [str(saved), "16"]
    assert by_torch[:4] == [f"torch:{saved}", *other[1:4]]
    assert all(float(number) > 0 for number in (*ngrams[4:], *other[4:], *by_torch[4:]))


def test_the_nearest_text_decides():
    train = unit([[1, 0], [0, 1], [1, 1]])
    test = unit([[2, 0.1], [0.9, 1], [0, 3]])
    assert nearest_agreement(train, ["a", "b", "c"], test, ["a", "c", "a"]) == pytest.approx(2 / 3)


def test_an_encoder_that_is_not_there_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("CAUCUS_MODELS", str(tmp_path / "none"))
    with pytest.raises(SystemExit, match=r"^error: model minilm; .*make models"):
        main([*_files(tmp_path), "--encoder", "minilm"])
