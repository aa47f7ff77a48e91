"""Drafts of single sentences, written by an n-gram model of the passages; the best draft is used."""

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

from server.llm.base import Request
from server.llm.builtin.library import Sense
from server.llm.builtin.ngram import Between, Sentence, Walk, bare, tokenise

_DRAFTS = 2  # number of drafts of each sentence
_PUSH = 0.8  # exponent of the ratio of a word's frequencies in good and bad exemplars
_MEANT, _MOST = 0.5, 6.0  # exponent of the ratio that the label gives a word, and its bound
_UNHEARD, _COPIED = 0.15, 0.1  # subtracted from a draft's score for each unknown run of three words, and for a copy


class Drafts:
    """A writer that drafts single sentences.

    Args:
        pool: Sentences that the n-gram model is built from.
        boost: Factor by which each word's weight is multiplied.
        between: Counts over all texts that the model has read.
    """

    def __init__(self, pool: Sequence[Sentence], boost: Mapping[str, float], between: Between) -> None:
        self._pool, self._boost, self._between = pool, boost, between
        self._copies = frozenset(pool)
        self._merit = {word: math.log(factor) for word, factor in boost.items()}

    def best(self, begin: Sequence[str], weights: Sequence[float], looseness: float, rng: random.Random) -> Sentence:
        """Return the draft with the highest score; for the arguments see `Walk.write`."""
        drafts = [self._walk.write(begin, weights, looseness, rng) for _ in range(_DRAFTS)]
        return max(drafts, key=self._score)

    def around(self, phrase: Sentence, weights: Sequence[float], looseness: float, rng: random.Random) -> Sentence:
        """Return one sentence that contains the phrase, written outward from it in both directions."""
        end = self._walk.write(phrase, weights, looseness, rng)
        sentence = self._backward.write(end[::-1], weights, looseness, rng)[::-1]
        if len(sentence) > len(phrase):
            return sentence
        # The model never read the phrase, so the phrase is inserted into a sentence about the rest.
        host = self.best((), weights, looseness, rng)
        at = rng.randrange(len(host) // 2, len(host)) if host else 0
        return host[:at] + phrase + host[at:]

    def _score(self, draft: Sentence) -> float:
        """Return a draft's score: the merit of its words, minus penalties for unknown word sequences and copying."""
        merit = math.fsum(self._merit.get(word, 0.0) for word in {bare(token) for token in draft})
        score = merit / math.sqrt(len(draft) + 1) - _UNHEARD * self._between.unheard(draft)
        return score - (_COPIED if draft in self._copies else 0.0)

    @cached_property
    def _walk(self) -> Walk:
        return Walk(self._pool, self._boost)

    @cached_property
    def _backward(self) -> Walk:
        return Walk(self._pool, self._boost, backward=True)


def word_factors(request: Request, senses: Sequence[Sense]) -> dict[str, float]:
    """Return a factor for each word's weight, from the labels' senses and, if there are bad exemplars, all exemplars.

    Args:
        request: If the request has bad exemplars, a factor rises with the word's frequency in good exemplars and falls
            with the word's frequency in bad exemplars.
        senses: Senses of the requested labels, of which the one that favours a word most counts.
    """
    meaning: dict[str, float] = {}
    for sense in senses:
        meaning |= {word: max(ratio, meaning.get(word, ratio)) for word, ratio in sense.words.items()}
    factors = {word: min(max(ratio, 1 / _MOST), _MOST) ** _MEANT for word, ratio in meaning.items()}
    if request.bad:
        good, bad = _document_counts(request.good), _document_counts(request.bad)
        for word in good.keys() | bad.keys():
            ratio = ((good[word] + 0.5) / (len(request.good) + 1)) / ((bad[word] + 0.5) / (len(request.bad) + 1))
            factors[word] = factors.get(word, 1.0) * ratio**_PUSH
    return factors


def _document_counts(texts: Sequence[str]) -> Counter[str]:
    return Counter(word for text in texts for word in {bare(token) for token in tokenise(text)})
