"""Encoders as the rest of the program sees them: vectors, identity, prompts, and what is refused."""

import os
import subprocess
import sys

import numpy as np
import pytest

from common.errors import ConfigError
from common.models.encoder import Encoder
from tests.support.tiny_models import tiny_bert, tiny_transformer

TEXTS = [
    *("Short of breath since Tuesday, worse lying flat.", "short of breath since tuesday worse lying flat"),
    *("My card has not arrived yet.", "Ödeme geçmedi: naïve café 38.5 °C", "呼吸困难两天"),
    *("a", "!!!", "", "\ud800", "one two " * 2000),
]


@pytest.fixture(scope="module")
def encoder():
    return Encoder.hashed_ngrams(dimensions=64, bits=12)


def test_vectors_are_unit_and_in_order_and_independent_of_their_neighbours(encoder):
    vectors = encoder.encode(TEXTS)
    assert (vectors.shape, vectors.dtype) == ((len(TEXTS), 64), np.float32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(np.vstack([encoder.encode([text]) for text in TEXTS]), vectors)
    np.testing.assert_array_equal(encoder.encode(TEXTS[::-1] * 60), np.tile(vectors[::-1], (60, 1)))
    none = encoder.encode([])
    assert (none.shape, none.dtype) == ((0, 64), np.float32)


def test_case_and_punctuation_do_not_matter_but_words_and_their_order_do(encoder):
    first, same, other = encoder.encode(TEXTS[:3])
    assert first @ same == pytest.approx(1, abs=1e-6)
    assert first @ other < 0.5
    one, other = encoder.encode(["dog bites man", "man bites dog"])
    assert 0.5 < one @ other < 0.999


def test_similarity_follows_shared_words():
    near, base, far = Encoder.hashed_ngrams().encode(
        ["cough and fever for three days", "cough and fever for two days", "please cancel my transfer"]
    )
    assert base @ near > 0.6
    # Signs of 256 dimensions: an unrelated pair lies within 4 standard deviations of 1/16 (false alarm 1 in 16,000).
    assert abs(base @ far) < 0.25


PROBE = """
from common.models.encoder import Encoder
encoder = Encoder.hashed_ngrams(dimensions=64, bits=12)
print(encoder.digest, encoder.encode(["Short of breath since Tuesday.", "naïve"]).tobytes().hex())
"""


def test_another_process_gives_the_same_bits(encoder):
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "OMP_NUM_THREADS": "2", "PYTHONUTF8": "1"}
    ran = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True, env=environment)
    vectors = encoder.encode(["Short of breath since Tuesday.", "naïve"])
    assert ran.stdout.split() == [encoder.digest, vectors.tobytes().hex()]


def test_the_embedded_encoder_is_what_it_was(encoder):
    """Guards the definition itself: a change here splits parties that run different versions."""
    assert encoder.digest == "db530ec09d3a2319fcc595d6b390c799a3611260c56ce3c4e4708d542b1574a2"
    signs = encoder.encode(["Short of breath since Tuesday."])[0] > 0
    assert np.packbits(signs).tobytes().hex() == "78cf25fb20528762"


def test_digest_tells_encoders_apart():
    sizes = [(64, 12, 0), (32, 12, 0), (37, 12, 0), (64, 13, 0), (64, 12, 1)]
    digests = {Encoder.hashed_ngrams(dimensions=d, bits=b, public_seed=s).digest for d, b, s in sizes}
    assert len(digests) == len(sizes)


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
    choices = [{}, {"pooling": "cls"}, {"pooling": "max"}, {"longest": 6}, {"prompt": "cough "}]
    encoders = [Encoder.transformer(bare, **choice) for choice in choices]
    text = ["fever and cough and fever and cough"]
    assert len({encoder.digest for encoder in encoders}) == len(choices)
    assert len({encoder.encode(text).tobytes() for encoder in encoders}) == len(choices)
    with pytest.raises(ConfigError, match=r"modules\.json.*embedding=transformer"):
        Encoder.pretrained(bare)
    with pytest.raises(ConfigError, match=r"^embedding\.pooling;"):
        Encoder.transformer(bare, pooling="sum")


@pytest.mark.parametrize("make", [Encoder.pretrained, Encoder.transformer])
def test_what_is_no_encoder_is_refused(make, tmp_path):
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
