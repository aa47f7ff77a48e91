import socket

import pytest

from common import checkpoints
from common.errors import ConfigError
from tests.tiny import tiny_summariser


def test_a_model_and_its_tokenizer_come_ready_for_use(tmp_path):
    model, tokenizer = checkpoints.load(str(tiny_summariser(tmp_path)), "AutoModelForSeq2SeqLM", what="it")
    assert not model.training
    assert tokenizer("fever")["input_ids"] == [0, 4, 2]


@pytest.mark.parametrize("name", ["no/such-model", "no-such-model", ".", "/nowhere"])
def test_what_is_not_here_is_refused_and_not_looked_for_elsewhere(name, tmp_path, monkeypatch):
    def refused(*_, **__):
        raise AssertionError("a connection")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    with pytest.raises(ConfigError, match="it cannot be loaded; expected a transformers checkpoint"):
        checkpoints.load(name, "AutoModelForSeq2SeqLM", what="it")


def test_a_broken_checkpoint_and_one_of_another_kind_are_refused(tmp_path):
    folder = tiny_summariser(tmp_path)
    with pytest.raises(ConfigError, match=r"it cannot be loaded.*AutoModelForTokenClassification"):
        checkpoints.load(str(folder), "AutoModelForTokenClassification", what="it")
    (folder / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(ConfigError, match=r"it cannot be loaded.*SafetensorError"):
        checkpoints.load(str(folder), "AutoModelForSeq2SeqLM", what="it")
