"""Encoders that torch computes, as their form differs from BERT with a mean over the tokens."""

import numpy as np
import pytest

from common.errors import ConfigError
from common.models import sentence_transformer
from common.models.encoder import Encoder
from common.models.sentence_transformer import TorchEncoder
from tests.support.tiny_models import tiny_transformer


@pytest.fixture
def saved(tmp_path):
    """A model that takes the first token's vector."""
    return tiny_transformer(tmp_path, pooling="cls")


def test_another_pooling_is_computed_by_torch_whose_digest_follows_weights_and_prompt_alone(saved):
    import torch

    encoder = Encoder.pretrained(saved, prompt="fever ")
    assert isinstance(encoder._model, TorchEncoder)
    again = Encoder.pretrained(saved, prompt="fever ")
    again.encode(["cough", "fever and cough"])
    assert again.digest == encoder.digest  # although it has padded and truncated meanwhile
    assert encoder.digest != Encoder.pretrained(saved).digest
    changed = Encoder.pretrained(saved, prompt="fever ")
    with torch.no_grad():
        next(iter(changed._model._model.parameters())).view(-1)[0] += 1e-3
    assert changed.digest != encoder.digest


def test_texts_of_like_length_share_a_batch_and_keep_their_order(saved, monkeypatch):
    encoder = Encoder.pretrained(saved)
    texts = ["fever " * length for length in (1, 300, 2, 400, 3, 1)] * 20
    monkeypatch.setattr(sentence_transformer, "_BATCH_TOKENS_ON_CPU", 1000)
    monkeypatch.setattr(sentence_transformer, "_BLOCK", 50)
    tokens = [len(text.split()) + 2 for text in texts]
    batches = [places for places, _ in encoder._model.batches(texts)]
    assert sorted(place for batch in batches for place in batch) == list(range(120))
    assert all(len(batch) * max(tokens[place] for place in batch) <= 1000 for batch in batches)
    alone = np.vstack([encoder.encode([text]) for text in texts[:6]])
    np.testing.assert_allclose(encoder.encode(texts), np.tile(alone, (20, 1)), atol=1e-5)


def test_a_model_without_tokens_is_encoded_in_batches_of_texts(tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import BoW

    SentenceTransformer(modules=[BoW(vocab=["fever", "cough"])], device="cpu").save(str(tmp_path))
    (tmp_path / "model.safetensors").touch()  # a bag of words has no weights
    vectors = Encoder.pretrained(tmp_path).encode(["fever", "cough", "cough"] * 100)
    np.testing.assert_array_equal(vectors, np.tile(np.eye(2)[[0, 1, 1]], (100, 1)))


def test_half_a_surrogate_pair_is_no_error(saved):
    encoder = Encoder.pretrained(saved)
    np.testing.assert_allclose(encoder.encode(["fever \ud800"]), encoder.encode(["fever ?"]), atol=1e-6)


def test_a_model_that_sees_pictures_is_refused(saved, monkeypatch):
    from sentence_transformers import SentenceTransformer

    monkeypatch.setattr(SentenceTransformer, "modalities", ["text", "image"])
    with pytest.raises(ConfigError, match="the encoder reads image"):
        Encoder.pretrained(saved)
