import pytest

from simulations.laboratory.benchmarks import served
from tests.support.tiny_gguf import tiny_gguf


@pytest.mark.openvino
def test_both_answer_the_same_requests_and_are_compared(tmp_path, capsys):
    tiny_gguf(tmp_path / "tiny", context=4096)
    options = ["--requests", "6", "--concurrency", "3", "--tokens", "8", "--repetitions", "2"]
    wall, processor = served.main(["--model", str(tmp_path / "tiny"), *options])
    assert (wall.to, wall.goal) == ("engine", 1.11)
    assert min(wall.value, processor.value) > 0
    _, _, *lines = capsys.readouterr().out.splitlines()
    assert [len(line.split()) for line in lines] == [4] * 4


def test_weights_that_are_not_there_and_a_server_that_does_not_start_are_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("CAUCUS_MODELS", str(tmp_path / "none"))
    with pytest.raises(SystemExit, match="model smollm2"):
        served.main([])
    monkeypatch.setattr(served, "ChatModel", lambda *_, **__: None)
    with pytest.raises(SystemExit, match="code 2"):
        served.main([])
