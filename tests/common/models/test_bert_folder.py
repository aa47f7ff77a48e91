"""Which folders numpy computes, and that an encoder is the same by whichever library it is computed."""

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from common.errors import ConfigError
from common.models.bert import Bert
from common.models.bert_folder import BertFolder
from common.models.encoder import Encoder
from common.models.sentence_transformer import TorchEncoder
from tests.support.tiny_models import tiny_transformer


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return tiny_transformer(tmp_path_factory.mktemp("tiny"), normalised=True, prompts={"query": "fever "})


@pytest.fixture
def folder(original, tmp_path):
    """A copy that a test may change."""
    return shutil.copytree(original, tmp_path / "copy")


def change(file, **changes):
    """Set keys of a JSON file; None removes one, and `__` stands between the keys of a path."""
    content = json.loads(file.read_text()) if file.exists() else {}
    for path, value in changes.items():
        at, (*parents, name) = content, path.split("__")
        for parent in parents:
            at = at[parent]
        if value is None:
            at.pop(name)
        else:
            at[name] = value
    file.write_text(json.dumps(content))


def reweighted(folder, function):
    weights = function(load_file(folder / "model.safetensors"))
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def by_torch(folder, prompt=""):
    form = BertFolder.of_sentence_encoder(folder)
    return Encoder(TorchEncoder.load(folder, device="cpu", prompt=prompt, form=form))


def test_both_libraries_and_a_copy_give_one_digest_and_the_same_vectors(folder, tmp_path):
    from sentence_transformers import SentenceTransformer

    texts = ["fever and cough", "", "cough", "fever " * 30]
    for prompt in ("", "cough "):
        one, other = Encoder.pretrained(folder, prompt=prompt), by_torch(folder, prompt)
        assert isinstance(one._model, Bert)
        assert one.dimensions == other.dimensions == 16
        np.testing.assert_allclose(one.encode(texts), other.encode(texts), atol=2e-6)
        assert one.digest == other.digest == Encoder.pretrained(folder, prompt=prompt).digest
    SentenceTransformer(str(folder), device="cpu").save(str(tmp_path / "library"))
    assert Encoder.pretrained(tmp_path / "library").digest == Encoder.pretrained(folder).digest


@pytest.mark.parametrize(
    "alter",
    [
        lambda at: change(at / "tokenizer.json", truncation={"max_length": 3, "strategy": "LongestFirst", "stride": 0}),
        lambda at: change(at / "tokenizer.json", decoder=None),
        lambda at: change(at / "config.json", transformers_version="4.8.2", gradient_checkpointing=False),
        lambda at: change(at / "config.json", dtype=None),
        lambda at: change(at / "tokenizer_config.json", name_or_path="elsewhere", model_max_length=10**30),
        lambda at: change(at / "sentence_bert_config.json", max_seq_length=512),
        lambda at: (at / "README.md").write_text("words"),
        lambda at: reweighted(at, lambda weights: {k: v for k, v in weights.items() if "pooler" not in k}),
        lambda at: reweighted(at, lambda weights: weights | {"embeddings.position_ids": np.arange(512)}),
    ],
)
def test_what_affects_no_vector_changes_no_digest(alter, original, folder):
    alter(folder)
    assert Encoder.pretrained(folder).digest == Encoder.pretrained(original).digest
    np.testing.assert_array_equal(
        Encoder.pretrained(folder).encode(["fever " * 20]), Encoder.pretrained(original).encode(["fever " * 20])
    )


def _lowercase(at):
    change(at / "tokenizer_config.json", do_lower_case=False)
    change(at / "tokenizer.json", normalizer__lowercase=False)


@pytest.mark.parametrize(
    "alter",
    [
        lambda at: reweighted(
            at, lambda weights: weights | {k: v + 1e-7 for k, v in weights.items() if "query.b" in k}
        ),
        lambda at: change(at / "sentence_bert_config.json", max_seq_length=100),
        lambda at: change(at / "tokenizer_config.json", model_max_length=100),
        lambda at: change(at / "config.json", layer_norm_eps=1e-5),
        lambda at: change(at / "config.json", num_attention_heads=4),
        lambda at: change(at / "config_sentence_transformers.json", default_prompt_name="query"),
        lambda at: change(at / "tokenizer.json", model__vocab__fever=7, model__vocab__cough=5),
        _lowercase,
    ],
)
def test_what_affects_vectors_changes_the_digest_by_either_library(alter, original, folder):
    alter(folder)
    encoder = Encoder.pretrained(folder)
    assert isinstance(encoder._model, Bert)
    assert encoder.digest != Encoder.pretrained(original).digest
    assert by_torch(folder, encoder._model._prompt).digest == encoder.digest


OTHER = {
    "config.json": [
        *({"model_type": "roberta"}, {"hidden_act": "gelu_new"}, {"position_embedding_type": "relative_key"}),
        *({"is_decoder": True}, {"dtype": "float16"}, {"auto_map": {"AutoModel": "code.Model"}}, {"vocab_size": 7}),
        *({"num_attention_heads": 5}, {"layer_norm_eps": None}, {"num_hidden_layers": 2}),
    ],
    "1_Pooling/config.json": [
        *({"pooling_mode": "cls"}, {"pooling_mode": None, "pooling_mode_max_tokens": True}, {"include_prompt": False}),
    ],
    "2_Normalize/config.json": [{"module_output_name": "other"}],
    "sentence_bert_config.json": [{"do_lower_case": True}, {"max_seq_length": 513}, {"query_length": 5}],
    "config_sentence_transformers.json": [{"model_type": "SparseEncoder"}],
    "tokenizer_config.json": [
        *({"do_lower_case": False}, {"strip_accents": False}, {"tokenizer_class": "RobertaTokenizer"}),
        *({"truncation_side": "left"}, {"cls_token": "[SEP]"}, {"added_tokens_decoder": {"0": {"content": "[PAD]"}}}),
    ],
    "special_tokens_map.json": [{"sep_token": {"content": "[PAD]"}}],
    "tokenizer.json": [
        *({"added_tokens": []}, {"model__type": "WordLevel"}, {"pre_tokenizer": {"type": "Whitespace"}}),
        *({"post_processor__single": []}, {"post_processor__type": "BertProcessing"}),
        {"model__vocab__cls": 2, "model__vocab__[CLS]": None},
    ],
}
"""Settings of another form, by their file."""


@pytest.mark.parametrize(("file", "changes"), [(file, changes) for file in OTHER for changes in OTHER[file]])
def test_a_folder_with_a_setting_of_another_form_is_left_to_the_libraries(file, changes, folder):
    assert BertFolder.of_sentence_encoder(folder) is not None
    change(folder / file, **changes)
    assert BertFolder.of_sentence_encoder(folder) is None


@pytest.mark.parametrize(
    "alter",
    [
        *(
            lambda at, file=file: (at / file).unlink()
            for file in ("1_Pooling/config.json", "tokenizer.json", "config.json")
        ),
        lambda at: (at / "tokenizer.json").write_text((at / "tokenizer.json").read_text().replace("[CLS]", "<s>")),
        lambda at: (at / "adapter_config.json").write_text("{}"),
        lambda at: (at / "model.safetensors").rename(at / "weights.safetensors"),
        lambda at: reweighted(at, lambda weights: {f"bert.{k}": v for k, v in weights.items()}),
        lambda at: reweighted(at, lambda weights: {k: v.astype(np.float16) for k, v in weights.items()}),
    ],
)
def test_a_folder_of_other_files_is_left_to_the_libraries(alter, folder):
    alter(folder)
    assert BertFolder.of_sentence_encoder(folder) is None


@pytest.mark.parametrize(
    "modules",
    [
        [("sentence_transformers.models.Transformer", ""), ("sentence_transformers.models.Dense", "1_Pooling")],
        [("sentence_transformers.models.Transformer", "0"), ("sentence_transformers.models.Pooling", "1_Pooling")],
        [("evil.Transformer", ""), ("sentence_transformers.models.Pooling", "1_Pooling")],
        [("sentence_transformers.models.Transformer", "")],
    ],
)
def test_other_modules_are_left_to_the_libraries(modules, folder):
    listed = [{"idx": at, "name": str(at), "path": path, "type": kind} for at, (kind, path) in enumerate(modules)]
    (folder / "modules.json").write_text(json.dumps(listed))
    assert BertFolder.of_sentence_encoder(folder) is None


@pytest.mark.parametrize(
    "harm",
    [
        lambda at: (at / "model.safetensors").write_bytes(b"cut off"),
        lambda at: (at / "model.safetensors").write_bytes((at / "model.safetensors").read_bytes()[:-100]),
        lambda at: (at / "config.json").write_text("{"),
        lambda at: (at / "tokenizer.json").write_text("[]"),
        lambda at: (at / "tokenizer.json").write_text('{"model": 1}'),
        lambda at: (at / "modules.json").write_text("{}"),
        lambda at: (at / "modules.json").write_text("[1]"),
    ],
)
def test_damaged_files_are_one_error(harm, folder):
    harm(folder)
    with pytest.raises(ConfigError, match=r"^the encoder"):
        Encoder.pretrained(folder)
