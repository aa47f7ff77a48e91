"""TensorBoard's own reader sees the figures, once each, and nothing else."""

import sys

import pytest

from common.errors import ConfigError
from server.documents.metrics import Metrics, shareable
from server.report.tensorboard import FOLDER, track
from tests.support.runs import tiny

FIGURES = {
    "round": 1,
    "fid": 0.5,
    "weights": {"broad": 0.25, "narrow": float("nan"), "confusion": {"a": {"b": 3}}},
    "notes": ["a text"],
    "definition": "a text",
    "complete": True,
    "real_private": {"accuracy": 0.9, "simulation_only": True},
}


def read(run):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    reader = EventAccumulator(str(run / FOLDER))
    reader.Reload()
    return {tag: [(event.step, event.value) for event in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}


def test_numbers_alone_and_none_that_only_a_simulation_has():
    assert dict(shareable(FIGURES)) == {"round": 1.0, "fid": 0.5, "weights/broad": 0.25}


def test_a_step_that_is_done_again_counts_once(tmp_path):
    for step, value in ((1, 0.5), (2, 0.25), (3, 0.125), (2, 0.75)):
        track("tensorboard", tmp_path, step, Metrics(content={"fid": value}))
    assert read(tmp_path) == {"fid": [(1, 0.5), (2, 0.75)]}


def test_one_that_is_not_installed_is_named_before_the_run(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(ConfigError, match=r"EXTRAS=\[tracking\]"):
        tiny(tmp_path / "run", "tracking=tensorboard")
    assert not (tmp_path / "run" / "state").exists()


def test_a_run_is_tracked_and_no_text_of_it(tmp_path):
    folder = tiny(tmp_path / "run", "tracking=tensorboard", "evaluation.metrics=[]")
    seen = read(folder)
    assert [step for step, _ in seen["fid"]] == [1, 2, 3]
    assert {"weights/broad", "tokens/input", "epsilon", "synthetic/accuracy"} <= set(seen)
    assert not any("private" in tag for tag in seen)
    content = b"".join(path.read_bytes() for path in (folder / FOLDER).iterdir())
    texts = (folder / "synthetic.jsonl").read_text("utf-8")
    assert not any(word.encode() in content for word in texts.split() if len(word) > 12 and word.isalpha())
