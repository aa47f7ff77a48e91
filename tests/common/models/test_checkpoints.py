import json
import shutil
from types import SimpleNamespace

import pytest

from common.errors import ConfigError
from common.models import checkpoints
from tests.support.offline import refuse_network
from tests.support.tiny_models import tiny_bert, tiny_summariser


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return tiny_bert(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture
def bert(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "bert")


def test_a_folder_is_found_as_it_is_and_a_misspelt_name_is_told(bert):
    assert checkpoints.model_folder(str(bert)) == bert
    with pytest.raises(ConfigError, match=r"mean smollm2\?"):
        checkpoints.model_folder("/a/folder/smolm2")


def test_a_name_is_looked_up_in_the_cache(bert, tmp_path, monkeypatch):
    cached = tmp_path / "hub" / "models--someone--bert"
    shutil.copytree(bert, cached / "snapshots" / "abc")
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("abc")
    import huggingface_hub

    here = huggingface_hub.snapshot_download
    monkeypatch.setattr(
        huggingface_hub, "snapshot_download", lambda *args, **kw: here(*args, cache_dir=tmp_path / "hub", **kw)
    )
    assert checkpoints.model_folder("someone/bert") == cached / "snapshots" / "abc"


def test_a_head_of_the_wrong_kind_is_refused(bert):
    assert checkpoints.configuration(bert, "classification").model_type == "bert"
    # transformers would put a head of random weights on it and write nonsense.
    with pytest.raises(ConfigError, match=r"BertModel"):
        checkpoints.configuration(bert, "causal", "sequence-to-sequence")
    config = json.loads((bert / "config.json").read_text())
    (bert / "config.json").write_text(json.dumps(config | {"model_type": "vit", "architectures": None}))
    with pytest.raises(ConfigError, match=r"^model;.*\(vit\)"):
        checkpoints.configuration(bert, "classification")


EVIL = json.dumps({"model_type": "evil", "auto_map": {"AutoConfig": "evil.Config"}})


@pytest.mark.parametrize("config", ["{", "[]", '{"model_type": "no-such-type"}', "{}", EVIL])
def test_a_configuration_that_cannot_be_read_or_needs_code_is_one_error_and_no_code_is_run(bert, config):
    (bert / "config.json").write_text(config)
    (bert / "evil.py").write_text("raise SystemExit('code of a model was run')")
    with pytest.raises(ConfigError, match=r"^the configuration"):
        checkpoints.configuration(bert, "causal")


def test_no_tokenizer_is_made_up(bert):
    assert len(checkpoints.tokenizer(bert)) == 8
    for file in ("tokenizer.json", "vocab.txt"):
        (bert / file).unlink(missing_ok=True)
    with pytest.raises(ConfigError, match=r"^model;.*tokenizer"):
        checkpoints.tokenizer(bert)


def test_a_digest_follows_weights_configuration_tokenizer_and_settings_and_nothing_else(bert, tmp_path):
    before = checkpoints.digest(bert, longest=5)
    copy = shutil.copytree(bert, tmp_path / "another name")
    (copy / "README.md").write_text("about it")
    assert checkpoints.digest(copy, longest=5) == before
    assert checkpoints.digest(bert, longest=6) != before
    for file in ("model.safetensors", "config.json", "vocab.txt", "other.gguf", "other.xml"):
        with (copy / file).open("ab") as opened:
            opened.write(b" ")
        after = checkpoints.digest(copy, longest=5)
        assert after != before
        before = after


@pytest.mark.parametrize("name", ["no/such-model", "no-such-model", ".", "/nowhere"])
def test_what_is_not_here_is_refused_and_not_looked_for_elsewhere(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refuse_network(monkeypatch, AssertionError("a connection"))
    with pytest.raises(ConfigError, match=r"^it;"):
        checkpoints.load_checkpoint(name, "AutoModelForSeq2SeqLM", what="it")


def test_a_model_comes_ready_for_use_and_a_broken_one_or_one_of_another_kind_is_refused(tmp_path):
    folder = tiny_summariser(tmp_path)
    model, tokenizer = checkpoints.load_checkpoint(str(folder), "AutoModelForSeq2SeqLM", what="it")
    assert not model.training
    assert tokenizer("fever")["input_ids"] == [0, 4, 2]
    with pytest.raises(ConfigError, match=r"^the it"):
        checkpoints.load_checkpoint(str(folder), "AutoModelForTokenClassification", what="it")
    (folder / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(ConfigError, match="SafetensorError"):
        checkpoints.load_checkpoint(str(folder), "AutoModelForSeq2SeqLM", what="it")


@pytest.mark.parametrize(
    ("saved", "instructions", "device", "expected"),
    [
        ("bfloat16", {"avx512_f": True, "avx512_bf16": False}, "cpu", "float32"),
        ("bfloat16", {"amx_bf16": True}, "cpu", "bfloat16"),
        ("float16", {"avx512_bf16": True}, "cpu", "float32"),
        ("bfloat16", {}, "cuda:1", "auto"),
    ],
)
def test_a_processor_computes_in_bfloat16_only_with_instructions_for_it(
    saved, instructions, device, expected, monkeypatch
):
    import torch

    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: instructions)
    for stated in (saved, getattr(torch, saved)):
        assert checkpoints.own_dtype(SimpleNamespace(dtype=stated), device) == expected
