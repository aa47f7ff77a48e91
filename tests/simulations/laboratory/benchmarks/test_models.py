import pytest

from common.models.conversion import convert
from simulations.laboratory.benchmarks import models
from tests.support.tiny_gguf import tiny_gguf


@pytest.mark.openvino
def test_a_line_for_each_kind_of_batch_on_a_tiny_model(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(models, "_SIZE", 64)
    tiny_gguf(tmp_path)
    convert("gguf to safetensors", tmp_path)
    models.main(["--model", str(tmp_path), "--texts", "4", "--repetitions", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("limit: ")
    assert [line[:16].strip() for line in lines[4:]] == ["different", "four texts each", "shared beginning"]
    for line in lines[4:]:
        *speeds, factor, _, share = line[16:].split()
        assert all(float(speed) > 0 for speed in (*speeds, factor))
        assert len(speeds) == 4
        assert share.endswith("%")


def test_batches_have_the_lengths_they_promise():
    def characters(text):
        return [ord(character) for character in text]

    different = models.different(characters, 8, 0)
    assert {len(job.ids) for job in different} == {110}
    assert len({job.ids for job in different}) == 8
    assert [job.count for job in models.several(characters, 8, 0)] == [4, 4]
    shared = models.shared(characters, 8, 0)
    assert {len(job.ids) for job in shared} == {248}
    assert len({job.ids[:233] for job in shared}) == 1


def test_weights_that_are_not_there_are_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("CAUCUS_MODELS", str(tmp_path / "none"))
    with pytest.raises(SystemExit, match=r"^error: model smollm2; .*make models"):
        models.main([])
