import socket

import pytest
import uvicorn

from server.llm.serve.__main__ import main
from tests.support.tiny_models import tiny_llama


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_llama(tmp_path_factory.mktemp("served") / "tiny", chat=True)


def test_it_listens_on_this_machine_alone_and_says_how_it_is_asked(folder, monkeypatch, capsys):
    bound = []

    def run(_, sockets):
        bound.extend(listening.getsockname() for listening in sockets)
        raise KeyboardInterrupt

    monkeypatch.setattr(uvicorn.Server, "run", run)
    assert main([str(folder), "--port", "0", "--engine", "transformers", "--device", "cpu"]) == 0
    ((host, port),) = bound
    assert host == "127.0.0.1"
    first, _ = capsys.readouterr().out.splitlines()
    assert first.split() == [
        "llm=server",
        f"llm.models.own.base_url=http://127.0.0.1:{port}/v1",
        "llm.models.own.model=tiny",
    ]


@pytest.mark.parametrize("wrong", [["no-such-model"], ["{}", "--top-p", "2"], ["{}", "--device", "abacus"]])
def test_a_model_that_cannot_be_served_is_one_line(wrong, folder, capsys):
    assert main([word.format(folder) for word in wrong]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_port_in_use_is_one_line(folder, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main([str(folder), "--port", str(taken.getsockname()[1])]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
