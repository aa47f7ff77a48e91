import os
import subprocess
import sys

import numpy as np
import pytest

from common.errors import ConfigError
from common.models.encoder import Encoder
from tests.support.tiny_models import tiny_bert, tiny_transformer

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
    return Encoder.hashed_ngrams(dimensions=64, bits=12)


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
    near, base, far = Encoder.hashed_ngrams().encode(
        ["cough and fever for three days", "cough and fever for two days", "please cancel my transfer"]
    )
    assert base @ near > 0.6
    # Signs of 256 dimensions: an unrelated pair lies within 4 standard deviations of 1/16 (false alarm 1 in 16,000).
    assert abs(base @ far) < 0.25


def test_word_order_matters_through_pairs(encoder):
    one, other = encoder.encode(["dog bites man", "man bites dog"])
    assert 0.5 < one @ other < 0.999


PROBE = """
from common.models.encoder import Encoder
encoder = Encoder.hashed_ngrams(dimensions=64, bits=12)
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
    encoder = Encoder.hashed_ngrams(dimensions=64, bits=12)
    assert encoder.digest == "db530ec09d3a2319fcc595d6b390c799a3611260c56ce3c4e4708d542b1574a2"
    signs = encoder.encode(["Short of breath since Tuesday."])[0] > 0
    assert np.packbits(signs).tobytes().hex() == "78cf25fb20528762"


def test_digest_tells_encoders_apart(encoder):
    others = [(32, 12, 0), (64, 13, 0), (64, 12, 1)]
    digests = {Encoder.hashed_ngrams(dimensions=d, bits=b, public_seed=s).digest for d, b, s in others} | {
        encoder.digest
    }
    assert len(digests) == 4
    assert Encoder.hashed_ngrams(dimensions=64, bits=12).digest == encoder.digest


@pytest.mark.parametrize("wrong", [{"dimensions": 8}, {"bits": 4}, {"bits": 40}])
def test_values_out_of_range_are_refused(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Encoder.hashed_ngrams(**wrong)


def test_a_missing_model_is_a_configuration_error(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for missing in (tmp_path / "nowhere", "sentence-transformers/no-such-model-here"):
        with pytest.raises(ConfigError, match=r"^encoder;"):
            Encoder.pretrained(missing)


def test_a_model_that_brings_code_is_refused(tmp_path):
    (tmp_path / "modules.json").write_text('[{"idx": 0, "name": "0", "path": "", "type": "evil.Module"}]')
    (tmp_path / "evil.py").write_text("raise SystemExit('code of a model was run')")
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"^the encoder"):
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


def test_a_prompt_is_put_before_each_text_and_belongs_to_the_encoder(tmp_path):
    saved = tiny_transformer(tmp_path, prompts={"query": "fever and "})
    plain, prompted = Encoder.pretrained(saved), Encoder.pretrained(saved, prompt_name="query")
    np.testing.assert_allclose(prompted.encode(["cough"]), plain.encode(["fever and cough"]), atol=1e-6)
    assert prompted.digest != plain.digest
    assert Encoder.pretrained(saved, prompt="fever and ").digest == prompted.digest
    with pytest.raises(ConfigError, match=r"^embedding\.prompt_name;"):
        Encoder.pretrained(saved, prompt_name="passage")


def test_a_folder_that_sentence_transformers_saved_brings_its_prompt(tmp_path):
    from sentence_transformers import SentenceTransformer

    saved = tiny_transformer(tmp_path)
    model = SentenceTransformer(str(saved), prompts={"ours": "fever and "}, default_prompt_name="ours", device="cpu")
    model.save(str(tmp_path / "copy"), create_model_card=False)
    copy = Encoder.pretrained(tmp_path / "copy")
    assert copy.digest == Encoder.pretrained(saved, prompt="fever and ").digest
    assert Encoder.pretrained(tmp_path / "copy", prompt="").digest == Encoder.pretrained(saved).digest


def test_a_bare_checkpoint_is_pooled_as_told_and_each_choice_is_another_encoder(tmp_path):
    bare = tiny_bert(tmp_path / "bert")
    encoders = [
        Encoder.transformer(bare),
        Encoder.transformer(bare, pooling="cls"),
        Encoder.transformer(bare, longest=6),
        Encoder.transformer(bare, prompt="cough "),
    ]
    assert len({encoder.digest for encoder in encoders}) == 4
    assert Encoder.transformer(bare).digest == encoders[0].digest
    text = ["fever and cough and fever and cough"]
    assert len({encoder.encode(text).tobytes() for encoder in encoders}) == 4
    with pytest.raises(ConfigError, match=r"modules\.json.*embedding=transformer"):
        Encoder.pretrained(bare)
    with pytest.raises(ConfigError, match=r"^embedding\.pooling;"):
        Encoder.transformer(bare, pooling="sum")


def test_the_models_own_normalisation_is_part_of_it(tmp_path):
    plain, normal = tiny_transformer(tmp_path / "a"), tiny_transformer(tmp_path / "b", normalised=True)
    one, other = Encoder.pretrained(plain), Encoder.pretrained(normal)
    assert one.digest != other.digest
    np.testing.assert_allclose(one.encode(["cough"]), other.encode(["cough"]), atol=1e-6)


@pytest.mark.parametrize("make", [Encoder.pretrained, Encoder.transformer])
def test_what_is_no_encoder_is_refused_in_one_clear_line(make, tmp_path):
    with pytest.raises(ConfigError, match=r"^encoder;.*config\.json"):
        make(tmp_path)
    saved = tiny_transformer(tmp_path)
    for file in ("tokenizer.json", "vocab.txt"):
        (saved / file).unlink(missing_ok=True)
    # transformers would go on with a tokenizer of five special tokens.
    with pytest.raises(ConfigError, match="tokenizer"):
        make(saved)
    (saved / "model.safetensors").unlink()
    with pytest.raises(ConfigError, match=r"^encoder;.*weights"):
        make(saved)
