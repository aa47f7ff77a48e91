"""Diversity of one set of texts."""

import re
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from common.errors import DataError
from server.metrics.fidelity import comparable

if TYPE_CHECKING:
    from sacrebleu.metrics.bleu import BLEU

DEFINITION = (
    "Self-BLEU: mean sentence BLEU-4 (sacrebleu, 0 to 1) of 100 texts drawn with the experiment seed, each against the "
    "other 99 (Zhu et al. 2018). Distinct-n: different n-grams over all, of lower-cased words, in the whole set. "
    "Self-similarity: mean cosine of all pairs of different texts' vectors."
)
"""Text that defines the figures in reports."""

SAMPLE = 100


def self_bleu(texts: Sequence[str], *, seed: int = 0) -> float:
    """Return the mean BLEU of each text in a sample against all others, 0 to 1; 1 if all texts are the same.

    Raises:
        DataError: There are fewer than two texts.
    """
    if len(texts) < 2:
        raise DataError("texts to compare with each other", expected="at least two", got=len(texts))
    from sacrebleu.metrics.bleu import BLEU, MAX_NGRAM_ORDER
    from sacrebleu.metrics.helpers import extract_all_word_ngrams

    # The size of the sample is fixed, because more references alone raise the figure.
    at = np.sort(np.random.default_rng(seed).choice(len(texts), min(SAMPLE, len(texts)), replace=False))
    bleu = BLEU(effective_order=True)
    tokenised = (bleu.tokenizer(texts[position].rstrip()) for position in at)
    counted = [extract_all_word_ngrams(text, 1, MAX_NGRAM_ORDER) for text in tokenised]
    return float(np.mean(_bleu_against_others(bleu, counted))) / 100


def _bleu_against_others(bleu: "BLEU", counted: Sequence[tuple[Counter[tuple[str, ...]], int]]) -> list[float]:
    """Return `bleu.sentence_score` of each text against all others, which itself would take fifty times as long.

    Args:
        bleu: The score's settings.
        counted: N-grams and length of each text.
    """
    most: dict[tuple[str, ...], tuple[int, int]] = {}  # the two largest counts in one text; equal ones count twice
    for grams, _ in counted:
        for gram, count in grams.items():
            first, second = most.get(gram, (0, 0))
            most[gram] = (count, first) if count > first else (first, max(second, count))
    scores = []
    for place, (grams, length) in enumerate(counted):
        correct, total = [0] * bleu.max_ngram_order, [0] * bleu.max_ngram_order
        for gram, count in grams.items():
            first, second = most[gram]
            total[len(gram) - 1] += count
            correct[len(gram) - 1] += min(count, second if count == first else first)
        others = (other for at, (_, other) in enumerate(counted) if at != place)
        scores.append(
            bleu.compute_bleu(
                correct=correct,
                total=total,
                sys_len=length,
                ref_len=min(others, key=lambda other: (abs(length - other), other)),
                smooth_method=bleu.smooth_method,
                smooth_value=bleu.smooth_value,
                effective_order=bleu.effective_order,
            ).score
        )
    return scores


def distinct(texts: Sequence[str], n: int) -> float:
    """Return distinct-n: the number of distinct n-grams divided by that of all n-grams, 0 to 1 (Li et al. 2016).

    Raises:
        DataError: No text has n words.
    """
    total, distinct_grams = 0, set[tuple[str, ...]]()
    for text in texts:
        # One object for each word: those of all texts would be most of the memory.
        words = [sys.intern(word) for word in re.findall(r"\w+", text.lower())]
        grams = [tuple(words[at : at + n]) for at in range(len(words) - n + 1)]
        total += len(grams)
        distinct_grams.update(grams)
    if not total:
        raise DataError(f"distinct {n}-grams", expected=f"a text of at least {n} words", got="none")
    return len(distinct_grams) / total


def self_similarity(vectors: NDArray[np.floating]) -> float:
    """Return the mean cosine of all pairs of different rows of (n, d) unit vectors, n at least 2.

    The sum over pairs is |sum of rows|^2 minus the squared norms, so the cosines of single pairs are not computed.

    Raises:
        DataError: There are fewer than two rows, or a value is not finite.
    """
    comparable("self-similarity", vectors)
    squares = np.einsum("nd,nd->", vectors, vectors, dtype=np.float64)
    total = (vectors.sum(axis=0, dtype=np.float64) ** 2).sum() - squares
    return float(total / (len(vectors) * (len(vectors) - 1)))
