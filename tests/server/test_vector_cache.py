import numpy as np
import pytest

from common.errors import ConfigError
from common.models.encoder import Encoder
from server.vector_cache import Remembered


@pytest.fixture
def encoder(monkeypatch):
    """An encoder that counts what it is asked for."""
    made = Encoder.hashed_ngrams(dimensions=32, bits=10)
    made.asked = []
    encode = made.encode
    monkeypatch.setattr(made, "encode", lambda texts: (made.asked.extend(texts), encode(texts))[1])
    return made


def test_each_text_is_embedded_once_by_one_encoder(encoder, tmp_path):
    texts = ["cough", "fever", "cough", "\ud800"]
    first = Remembered(encoder, tmp_path / "own" / "vectors.db")
    expected = Encoder.hashed_ngrams(dimensions=32, bits=10).encode(texts)
    np.testing.assert_array_equal(first.encode(texts), expected)
    assert encoder.asked == ["cough", "fever", "\ud800"]
    again = Remembered(encoder, tmp_path / "own" / "vectors.db")
    np.testing.assert_array_equal(again.encode([*texts, "new"])[:4], expected)
    assert encoder.asked == ["cough", "fever", "\ud800", "new"]
    assert (again.digest, again.dimensions) == (encoder.digest, 32)
    assert again.encode([]).shape == (0, 32)


def test_more_texts_than_one_look_up_holds(encoder, tmp_path):
    kept = Remembered(encoder, tmp_path / "vectors.db")
    texts = [f"text {number}" for number in range(1200)]
    first = kept.encode(texts)
    np.testing.assert_array_equal(kept.encode(texts[::-1])[::-1], first)
    assert len(encoder.asked) == 1200


def test_another_encoder_of_the_same_width_has_vectors_of_its_own(encoder, tmp_path):
    other = Encoder.hashed_ngrams(dimensions=32, bits=10, public_seed=1)
    one = Remembered(encoder, tmp_path / "vectors.db").encode(["cough"])
    assert not np.array_equal(Remembered(other, tmp_path / "vectors.db").encode(["cough"]), one)


def test_an_encoder_of_another_width_is_refused(encoder, tmp_path):
    Remembered(encoder, tmp_path / "vectors.db")
    with pytest.raises(ConfigError, match="got some of 32"):
        Remembered(Encoder.hashed_ngrams(dimensions=64, bits=10), tmp_path / "vectors.db")


def test_only_its_owner_reads_the_file_and_no_text_is_in_it(encoder, tmp_path):
    file = tmp_path / "vectors.db"
    Remembered(encoder, file).encode(["zyxcanaryzyx"])
    assert file.stat().st_mode & 0o777 == 0o600
    assert b"zyxcanary" not in file.read_bytes()


def test_a_file_of_something_else_is_refused(encoder, tmp_path):
    (tmp_path / "notes.txt").write_text("something else altogether, and long enough" * 20)
    with pytest.raises(ConfigError, match="cache of"):
        Remembered(encoder, tmp_path / "notes.txt")


def test_what_was_embedded_before_a_failure_is_kept(encoder, tmp_path, monkeypatch):
    monkeypatch.setattr("server.vector_cache._BLOCK", 3)
    kept = Remembered(encoder, tmp_path / "vectors.db")
    encode, calls = encoder.encode, []

    def failing(texts):
        calls.append(len(texts))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return encode(texts)

    monkeypatch.setattr(encoder, "encode", failing)
    texts = [f"text {number}" for number in range(5)]
    with pytest.raises(KeyboardInterrupt):
        kept.encode(texts)
    expected = Encoder.hashed_ngrams(dimensions=32, bits=10).encode(texts)
    np.testing.assert_array_equal(kept.encode(texts), expected)
    assert calls == [3, 2, 2]
