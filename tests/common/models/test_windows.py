"""Long texts in windows: what is averaged, what identifies the encoder, and that both libraries agree."""

import numpy as np
import pytest

from common.errors import ConfigError
from common.models.encoder import Encoder
from common.models.sentence_transformer import TorchEncoder
from common.models.windows import Averaged, no_windows, split
from tests.support.tiny_models import tiny_transformer

WORDS = ("fever", "and", "cough", "f", "##ever", "##s", "na", "##ive", ".")
LONG = "fever and cough fevers. " * 7 + "naive"
TEXTS = ["", "fever", "fever and cough", LONG, "cough\n" * 50]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_transformer(tmp_path_factory.mktemp("tiny"), words=WORDS, scale=0.3, longest=8)


def test_each_part_of_a_long_text_counts_by_its_tokens(folder):
    first, whole = Encoder.pretrained(folder), Encoder.pretrained(folder, windows="average")
    parts = first._model.windows(LONG)
    assert "".join(text for text, _ in parts) == LONG
    assert len(parts) > 5
    assert all(0 < tokens <= 6 for _, tokens in parts)
    assert all(not text.startswith("s") for text, _ in parts)  # "fevers" has two tokens, and is not cut apart
    mean = np.average(first.encode([text for text, _ in parts]), axis=0, weights=[tokens for _, tokens in parts])
    np.testing.assert_allclose(whole.encode([LONG])[0], mean / np.linalg.norm(mean), atol=2e-6)
    assert abs(whole.encode([LONG])[0] - first.encode([LONG])[0]).max() > 1e-3


def test_a_text_of_one_window_has_the_vector_that_it_has_without_and_any_order_gives_the_same(folder):
    first, whole = Encoder.pretrained(folder), Encoder.pretrained(folder, windows="average")
    np.testing.assert_allclose(whole.encode(TEXTS[:3]), first.encode(TEXTS[:3]), atol=2e-6)
    np.testing.assert_allclose(whole.encode(TEXTS[::-1])[::-1], whole.encode(TEXTS), atol=2e-6)
    assert whole.encode([]).shape == (0, whole.dimensions)


def test_the_choice_is_part_of_the_identity_which_without_it_is_as_before(folder):
    first, whole = Encoder.pretrained(folder), Encoder.pretrained(folder, windows="average")
    assert Encoder.pretrained(folder, windows="first").digest == first.digest == first._model.digest != whole.digest


def test_torch_reads_the_same_windows(folder):
    assert by_torch(folder).windows(LONG) == Encoder.pretrained(folder)._model.windows(LONG)


def test_a_word_longer_than_a_window_is_cut_and_windows_go_on():
    offsets, words = [(place, place + 1) for place in range(7)], [0, 0, 0, 0, 0, 1, 1]
    assert split("abcdefg", offsets, words, 3) == [("abc", 3), ("de", 2), ("fg", 2)]
    assert split("", [], [], 3) == [("", 1)]


def test_an_encoder_without_a_window_and_an_unknown_choice_are_refused(folder):
    no_windows("first")
    with pytest.raises(ConfigError, match=r"^embedding\.windows;"):
        no_windows("average")
    with pytest.raises(ConfigError, match=r"embedding\.windows"):
        Encoder.pretrained(folder, windows="all")


def by_torch(folder):
    return TorchEncoder.load(folder, device="cpu", prompt="", form=None)


@pytest.mark.parametrize("load", [lambda folder: Encoder.pretrained(folder)._model, by_torch], ids=["numpy", "torch"])
def test_that_texts_are_truncated_is_said_once_and_of_nothing_that_fits(folder, load, caplog):
    model = load(folder)
    list(Averaged(model).batches(TEXTS))
    assert caplog.messages == []
    list(model.batches([LONG]))
    list(model.batches([LONG]))
    (message,) = caplog.messages
    assert "8 tokens" in message
    assert "fever" not in message
