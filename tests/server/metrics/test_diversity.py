import numpy as np
import pytest
from sacrebleu import sentence_bleu

from common.errors import DataError
from server.metrics.diversity import distinct, self_bleu, self_similarity

TEXTS = ["the cat sat on the mat today", "the cat sat on a chair today", "dogs bark at night in the rain"]


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_self_bleu_is_the_mean_of_each_against_the_others():
    expected = np.mean([sentence_bleu(text, [other for other in TEXTS if other != text]).score for text in TEXTS])
    assert self_bleu(TEXTS) == pytest.approx(expected / 100)
    assert self_bleu([TEXTS[0]] * 3) == pytest.approx(1)
    assert self_bleu(["one two three four", "five six seven eight"]) == 0


def test_self_bleu_is_the_librarys_of_any_texts():
    rng = np.random.default_rng(2)
    pieces = ["a ", "b ", "b. ", "c-d ", "", "\n"]
    for _ in range(40):
        texts = ["".join(rng.choice(pieces, rng.integers(8))) for _ in range(rng.integers(2, 7))]
        others = [[other for at, other in enumerate(texts) if at != place] for place in range(len(texts))]
        scores = [sentence_bleu(text, rest).score for text, rest in zip(texts, others, strict=True)]
        assert self_bleu(texts) == np.mean(scores) / 100


def test_self_bleu_of_a_sample_is_that_of_the_drawn_texts():
    many = [f"text number {i // 10} of {i % 7} {'here ' * (i % 3)}" for i in range(50)]
    assert self_bleu(many, sample=5) == self_bleu(many, sample=5)
    assert self_bleu(many, sample=5) != self_bleu(many, sample=5, seed=1)


def test_distinct_by_hand():
    assert distinct(["A b a", "b a"], 1) == 2 / 5
    assert distinct(["A b a", "b a"], 2) == 2 / 3
    with pytest.raises(DataError, match="3 words"):
        distinct(["a b", ""], 3)


def test_self_similarity_is_the_mean_of_all_pairs():
    vectors = unit(np.random.default_rng(0).normal(size=(20, 4)) + 1)
    pairs = [vectors[i] @ vectors[j] for i in range(20) for j in range(i)]
    assert self_similarity(vectors) == pytest.approx(np.mean(pairs), rel=1e-5)
    with pytest.raises(DataError, match="2 rows"):
        self_similarity(vectors[:1])


def test_one_text_is_refused():
    with pytest.raises(DataError, match="at least two"):
        self_bleu(["a"])
