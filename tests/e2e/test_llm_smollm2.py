"""Whole runs of `llm=smollm2`: with a tiny model in its place, and with the real weights."""

import pytest

from common.models.fetch import convert_gguf
from server.llm.engines import openvino
from tests.support.real_models import fetched
from tests.support.runs import lines, read, tiny
from tests.support.tiny_gguf import tiny_gguf
from tests.support.wheels import as_fetched

pytestmark = pytest.mark.openvino


def assert_whole(run):
    texts = lines(run, "synthetic.jsonl")
    assert len(texts) > 40
    assert {row["model"] for row in texts} == {"smollm2"}
    assert not any("\n" in row["text"] or "<|" in row["text"] for row in texts)
    assert sum("declines contrast" in note for note in lines(run, "rounds.jsonl")[0]["notes"]) == 1
    assert read(run, "privacy.json")["epsilon"] == pytest.approx(4.0)
    return texts


def test_a_run_with_a_tiny_model_in_place_of_the_real_one(tmp_path, monkeypatch):
    folder = tmp_path / "models" / "smollm2"
    tiny_gguf(folder)
    convert_gguf(folder)
    as_fetched(folder, "smollm2")
    monkeypatch.setenv("CAUCUS_MODELS", str(folder.parent))
    assert_whole(tiny(tmp_path / "run", "llm=smollm2", "method.samples=60", "method.words=8"))


@pytest.mark.slow
def test_the_real_weights_write_the_same_notes_again(tmp_path):
    for name in ("smollm2", "minilm"):
        fetched(name)
    runs = []
    for name in "ab":
        openvino._pipeline.cache_clear()  # as in a new process: a prompt that was read before may change a text
        run = tiny(tmp_path / name, "llm=smollm2", "embedding=minilm", "method.samples=60", "privacy.epsilon=4")
        runs.append(assert_whole(run))
    first, second = runs
    # The noise of the votes is secret and new, so only the first round is the same.
    assert [row for row in first if row["round"] == 1] == [row for row in second if row["round"] == 1]
    words = [len(row["text"].split()) for row in first]
    assert 10 < sum(words) / len(words) < 120
