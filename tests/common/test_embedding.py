import os
import subprocess
import sys

import numpy as np
import pytest

from common.embedding import Encoder
from common.errors import ConfigError

TEXTS = [
    "Short of breath since Tuesday, worse lying flat.",
    "short of breath since tuesday worse lying flat",
    "My card has not arrived yet.",
    "Ödeme geçmedi: naïve café 38.5 °C",
    "呼吸困难两天",
    "a",
    "!!!",
    "",
    "\ud800",
    "one two " * 2000,
]


@pytest.fixture(scope="module")
def encoder():
    return Encoder.embedded(dimensions=64, bits=12)


def test_vectors_are_unit_and_in_order(encoder):
    vectors = encoder.encode(TEXTS)
    assert vectors.shape == (len(TEXTS), 64)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    backwards = encoder.encode(TEXTS[::-1])
    np.testing.assert_array_equal(backwards[::-1], vectors)


def test_no_text_gives_no_row(encoder):
    assert encoder.encode([]).shape == (0, 64)
    assert encoder.encode([]).dtype == np.float32


def test_a_vector_does_not_depend_on_its_neighbours(encoder):
    together = encoder.encode(TEXTS * 60)
    alone = np.vstack([encoder.encode([text]) for text in TEXTS])
    np.testing.assert_array_equal(together, np.tile(alone, (60, 1)))


def test_case_and_punctuation_do_not_matter_but_words_do(encoder):
    first, same, other = encoder.encode(TEXTS[:3])
    assert first @ same == pytest.approx(1, abs=1e-6)
    assert first @ other < 0.5


def test_similarity_follows_shared_words():
    near, base, far = Encoder.embedded().encode(
        ["cough and fever for three days", "cough and fever for two days", "please cancel my transfer"]
    )
    assert base @ near > 0.6
    # Signs of 256 dimensions: an unrelated pair lies within 4 standard deviations of 1/16 (false alarm 1 in 16,000).
    assert abs(base @ far) < 0.25


def test_word_order_matters_through_pairs(encoder):
    one, other = encoder.encode(["dog bites man", "man bites dog"])
    assert 0.5 < one @ other < 0.999


PROBE = """
from common.embedding import Encoder
encoder = Encoder.embedded(dimensions=64, bits=12)
print(encoder.digest, encoder.encode(["Short of breath since Tuesday.", "naïve"]).tobytes().hex())
"""


def test_another_process_gives_the_same_bits(encoder):
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "OMP_NUM_THREADS": "2", "PYTHONUTF8": "1"}
    ran = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True, env=environment)
    digest, vectors = ran.stdout.split()
    assert digest == encoder.digest
    assert vectors == encoder.encode(["Short of breath since Tuesday.", "naïve"]).tobytes().hex()


def test_the_embedded_encoder_is_what_it_was():
    """Guards the definition itself: a change here splits parties that run different versions."""
    encoder = Encoder.embedded(dimensions=64, bits=12)
    assert encoder.digest == "db530ec09d3a2319fcc595d6b390c799a3611260c56ce3c4e4708d542b1574a2"
    signs = encoder.encode(["Short of breath since Tuesday."])[0] > 0
    assert np.packbits(signs).tobytes().hex() == "78cf25fb20528762"


def test_digest_tells_encoders_apart(encoder):
    others = [(32, 12, 0), (64, 13, 0), (64, 12, 1)]
    digests = {Encoder.embedded(dimensions=d, bits=b, public_seed=s).digest for d, b, s in others} | {encoder.digest}
    assert len(digests) == 4
    assert Encoder.embedded(dimensions=64, bits=12).digest == encoder.digest


def test_saving_and_loading_the_embedded_encoder(encoder, tmp_path):
    encoder.save(tmp_path / "encoder")
    loaded = Encoder.pretrained(tmp_path / "encoder")
    assert loaded.digest == encoder.digest
    np.testing.assert_array_equal(loaded.encode(TEXTS), encoder.encode(TEXTS))


@pytest.mark.parametrize("wrong", [{"dimensions": 8}, {"bits": 4}, {"bits": 40}])
def test_values_out_of_range_are_refused(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Encoder.embedded(**wrong)


def test_a_missing_model_is_a_configuration_error(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for missing in (tmp_path / "nowhere", "sentence-transformers/no-such-model-here"):
        with pytest.raises(ConfigError, match="the encoder cannot be loaded") as caught:
            Encoder.pretrained(missing)
        assert "embedded" in str(caught.value)


def test_a_model_that_brings_code_is_refused(tmp_path):
    (tmp_path / "modules.json").write_text('[{"idx": 0, "name": "0", "path": "", "type": "evil.Module"}]')
    (tmp_path / "evil.py").write_text("raise SystemExit('code of a model was run')")
    with pytest.raises(ConfigError, match="cannot be loaded"):
        Encoder.pretrained(tmp_path)


def test_a_pretrained_transformer_is_loaded_from_its_folder(tmp_path):
    saved = tiny_transformer(tmp_path)
    encoder = Encoder.pretrained(saved)
    assert encoder.dimensions == 16
    texts = ["fever and cough", "cough", "fever fever fever fever"]
    vectors = encoder.encode(texts)
    assert vectors.shape == (3, 16)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(encoder.encode(texts[:1]), vectors[:1], atol=1e-5)

    again = Encoder.pretrained(saved)
    assert again.digest == encoder.digest  # although `encoder` has encoded meanwhile
    encoder.save(tmp_path / "copy")
    assert Encoder.pretrained(tmp_path / "copy").digest == encoder.digest


def test_one_changed_weight_changes_the_digest(tmp_path):
    import torch

    saved = tiny_transformer(tmp_path)
    encoder, changed = Encoder.pretrained(saved), Encoder.pretrained(saved)
    with torch.no_grad():
        next(iter(changed._model.parameters())).view(-1)[0] += 1e-3
    assert changed.digest != encoder.digest


def tiny_transformer(folder):
    """A real SentenceTransformer of one small random BERT layer, saved to disk as any other would be."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    bare, saved = folder / "bert", folder / "saved"
    bare.mkdir()
    (bare / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nfever\nand\ncough")
    torch.manual_seed(0)
    config = BertConfig(vocab_size=8, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    BertModel(config).save_pretrained(bare)
    BertTokenizerFast(str(bare / "vocab.txt")).save_pretrained(bare)
    transformer = Transformer(str(bare))
    model = SentenceTransformer(modules=[transformer, Pooling(transformer.get_embedding_dimension())], device="cpu")
    model.save(str(saved), create_model_card=False)
    return saved
