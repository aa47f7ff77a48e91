"""Short phrases that are characteristic of some passages: the built-in model's answer to a request for subtopics.

A phrase is one to three neighbouring words. Its score is its frequency in passages near a label, times the logarithm of
the ratio of this frequency to its frequency elsewhere (pointwise divergence: Tomokiyo and Hurst 2003). The frequency
elsewhere is the geometric mean of its frequencies in the other labels' passages and in all texts. A longer phrase is
more specific and scores higher.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from server.llm.builtin.ngram import Sentence, bare

Phrase = tuple[str, ...]

_LONGEST = 3  # words
_SHORTEST = 4  # letters of a phrase's first and last word
_COMMON = 0.25  # share of texts above which a word neither begins nor ends a phrase, as no English stop word does
_TWICE = 2  # minimum number of passages with a phrase
_CHOICE = 3  # number of candidates for each requested phrase
_LEAST = 1e-3  # of a score, so that what tells nothing apart comes last and not never


class Phrases:
    """The phrases that occur in a collection of texts.

    Args:
        texts: The sentences of each text.
    """

    def __init__(self, texts: Sequence[Sequence[Sentence]]) -> None:
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        words = Counter(word for text in texts for word in {bare(token) for part in text for token in part})
        self._grammar = ENGLISH_STOP_WORDS | {word for word, times in words.items() if times > _COMMON * len(texts) > 1}
        self._of = [frozenset(phrase for part in text for phrase in self._within(part)) for text in texts]
        self._times = Counter(phrase for phrases in self._of for phrase in phrases)

    def characteristic(
        self,
        near: NDArray[np.intp],
        others: NDArray[np.intp],
        *,
        count: int,
        temperature: float,
        rng: np.random.Generator,
    ) -> tuple[str, ...]:
        """Return up to `count` phrases, the likeliest first; no phrase contains all words of another.

        Args:
            near: Indices of the passages to characterise.
            others: Indices of the passages to compare them with; may be empty.
            count: Number of phrases requested.
            temperature: Of the draw among the best phrases; 0 takes the best.
            rng: The request's own random generator.
        """
        counts, rest = self._counted(near), self._counted(others)
        scores = {}
        for phrase, times in counts.items():
            if times >= min(_TWICE, len(near)):
                here = times / len(near)
                there = (rest[phrase] + 1) / (len(others) + 2) if len(others) else 1.0
                everywhere = self._times[phrase] / len(self._of)
                expected = math.sqrt(there * everywhere) if len(others) else everywhere
                scores[phrase] = len(phrase) * max(here * math.log(here / expected), _LEAST * here)
        best = sorted(scores, key=lambda phrase: (-scores[phrase], phrase))[: _CHOICE * count]
        luck = temperature * rng.gumbel(size=len(best))
        ranking = sorted(zip(best, luck, strict=True), key=lambda pair: -math.log(scores[pair[0]]) - pair[1])
        chosen_phrases: list[Phrase] = []
        for phrase, _ in ranking:
            if all(not set(phrase) <= set(other) and not set(other) <= set(phrase) for other in chosen_phrases):
                chosen_phrases.append(phrase)
        return tuple(" ".join(phrase) for phrase in chosen_phrases[:count])

    def _counted(self, texts: NDArray[np.intp]) -> Counter[Phrase]:
        return Counter(phrase for at in texts for phrase in self._of[at])

    def _within(self, part: Sentence) -> Iterator[Phrase]:
        words = [bare(token) for token in part]
        fit = [word.isalpha() and len(word) >= _SHORTEST and word not in self._grammar for word in words]
        for begin in range(len(words)):
            for end in range(begin, min(begin + _LONGEST, len(words))):
                if not words[end][:1].isalpha():
                    break
                if fit[begin] and fit[end]:
                    yield tuple(words[begin : end + 1])
