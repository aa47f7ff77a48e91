"""The forward pass in numpy against sentence-transformers."""

import numpy as np
import pytest
from scipy.special import erf

from common.errors import ConfigError
from common.models import bert
from common.models.bert import Bert, gelu
from common.models.encoder import Encoder
from tests.support.tiny_models import tiny_bert, tiny_transformer

WORDS = ("fever", "and", "cough", "f", "##ever", "##s", "na", "##ive", "cafe", "呼", "吸", "5", ".", "°", "c", "straße")
TEXTS = [
    *("fever and cough", "", " \t\n", "Fevers, and FEVER and coughs.", "naïve café 38.5 °C, Straße", "呼吸困难两天"),
    *("a\x00b\u200bc\ufffd", "[SEP] fever [MASK] and [PAD]", "😷 fever", "cough " * 3, "cough", "fever and " * 400),
    "x" * 150,
]


@pytest.fixture
def tiny(tmp_path):
    def make(**settings):
        return tiny_transformer(tmp_path / str(len(list(tmp_path.iterdir()))), words=WORDS, scale=0.3, **settings)

    return make


def by_library(folder, texts, **settings):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu").encode(texts, normalize_embeddings=True, **settings)


@pytest.mark.parametrize(
    "settings", [{}, {"normalised": True}, {"layers": 3, "width": 32}, {"longest": 8, "normalised": True, "seed": 5}]
)
def test_vectors_are_those_of_sentence_transformers(tiny, settings):
    folder = tiny(**settings)
    encoder = Encoder.pretrained(folder)
    assert isinstance(encoder._model, Bert)
    vectors = encoder.encode(TEXTS)
    np.testing.assert_allclose(vectors, by_library(folder, TEXTS), atol=2e-6, rtol=0)
    assert np.linalg.norm(vectors[0] - vectors[3]) > 0.01  # weights are large enough for texts to differ


def test_a_bare_network_is_averaged_as_sentence_transformers_does(tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    bare = tiny_bert(tmp_path / "bert", WORDS, scale=0.3)
    encoder = Encoder.transformer(bare, longest=8, prompt="cough ")
    assert isinstance(encoder._model, Bert)
    network = Transformer(str(bare), max_seq_length=8)
    library = SentenceTransformer(modules=[network, Pooling(16, "mean")], device="cpu")
    vectors = library.encode(TEXTS, prompt="cough ", normalize_embeddings=True)
    np.testing.assert_allclose(encoder.encode(TEXTS), vectors, atol=2e-6, rtol=0)
    library.save(str(tmp_path / "copy"))
    assert Encoder.pretrained(tmp_path / "copy", prompt="cough ").digest == encoder.digest


def test_texts_of_a_batch_have_one_length_and_keep_their_order(tiny, monkeypatch):
    encoder = Encoder.pretrained(tiny())
    texts = ["fever " * length for length in (1, 300, 2, 400, 3, 1)] * 20
    monkeypatch.setattr(bert, "_TOKENS", 1000)
    monkeypatch.setattr(bert, "_BLOCK", 50)
    batches = [places for places, _ in encoder._model.batches(texts)]
    assert sorted(place for batch in batches for place in batch) == list(range(120))
    assert all(len({texts[place] for place in batch}) == 1 for batch in batches)
    assert all(len(batch) * (len(texts[batch[0]].split()) + 2) <= 1000 for batch in batches)
    alone = np.vstack([encoder.encode([text]) for text in texts[:6]])
    np.testing.assert_allclose(encoder.encode(texts), np.tile(alone, (20, 1)), atol=1e-6)


def test_half_a_surrogate_pair_is_no_error(tiny):
    encoder = Encoder.pretrained(tiny())
    np.testing.assert_allclose(encoder.encode(["fever \ud800"]), encoder.encode(["fever ?"]), atol=1e-6)


def test_gelu_is_exact_to_a_millionth():
    x = np.linspace(-30, 30, 2_000_001).astype(np.float32)
    exact = x * (1 + erf(x.astype(np.float64) / np.sqrt(2))) / 2
    assert np.abs(gelu(x.copy()) - exact).max() < 7e-7
    largest = np.array([-1e19, -1e6, 0, 1e6, 1e19], np.float32)
    np.testing.assert_array_equal(gelu(largest.copy()), [0, 0, 0, *largest[3:]])


def test_weights_that_are_not_finite_are_refused(tiny):
    encoder = Encoder.pretrained(tiny())
    encoder._model._weights["embeddings.LayerNorm.bias"].fill(np.nan)
    with pytest.raises(ConfigError, match=r"^encoder;"):
        encoder.encode(["fever"])
