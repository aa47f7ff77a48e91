import numpy as np
import pytest
from sacrebleu import sentence_bleu

from common.errors import DataError
from server.metrics import diversity
from server.metrics.diversity import distinct, self_bleu, self_similarity


def test_self_bleu_is_the_librarys_mean_of_each_text_against_the_others():
    rng = np.random.default_rng(2)
    pieces = ["a ", "b ", "b. ", "c-d ", "", "\n"]
    for _ in range(40):
        texts = ["".join(rng.choice(pieces, rng.integers(8))) for _ in range(rng.integers(2, 7))]
        others = [[other for at, other in enumerate(texts) if at != place] for place in range(len(texts))]
        scores = [sentence_bleu(text, rest).score for text, rest in zip(texts, others, strict=True)]
        assert self_bleu(texts) == np.mean(scores) / 100
    assert self_bleu(["the cat sat on the mat"] * 3) == pytest.approx(1)
    assert self_bleu(["one two three four", "five six seven eight"]) == 0


def test_self_bleu_of_many_texts_is_of_those_drawn_with_the_seed(monkeypatch):
    monkeypatch.setattr(diversity, "SAMPLE", 5)
    many = [f"text number {i // 10} of {i % 7} {'here ' * (i % 3)}" for i in range(50)]
    assert self_bleu(many) == self_bleu(many) != self_bleu(many, seed=1)


def test_distinct_counts_different_sequences_of_words():
    assert [distinct(["A b a", "b a"], n) for n in (1, 2)] == [2 / 5, 2 / 3]


def test_self_similarity_is_the_mean_of_all_pairs():
    rows = np.random.default_rng(0).normal(size=(20, 4)) + 1
    vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    pairs = [vectors[i] @ vectors[j] for i in range(20) for j in range(i)]
    assert self_similarity(vectors) == pytest.approx(np.mean(pairs), rel=1e-5)


@pytest.mark.parametrize(
    "ask", [lambda: self_bleu(["a"]), lambda: distinct(["a b", ""], 3), lambda: self_similarity(np.ones((1, 4)))]
)
def test_texts_too_few_or_too_short_are_refused(ask):
    with pytest.raises(DataError):
        ask()
