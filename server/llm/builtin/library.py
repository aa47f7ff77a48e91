"""The texts that the built-in model has read, and the words, phrases and vectors that it associates with each label.

A phrase is one to three neighbouring words. Its score is its frequency in passages near a label, times the logarithm of
the ratio of this frequency to its frequency elsewhere (pointwise divergence: Tomokiyo and Hurst 2003). The frequency
elsewhere is the geometric mean of its frequencies in the other labels' passages and in all texts. A longer phrase is
more specific and scores higher.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from common import sections
from common.models.encoder import TextEncoder
from common.rng import experiment
from server.domain import Example
from server.llm.builtin.ngram import Between, Sentence, bare, normal_words, sentences, tokenise

Vector = NDArray[np.float32]
Phrase = tuple[str, ...]

NORM = 4000.0
"""Norm of vectors with integer entries. Inner products then stay below 2^24, so that float32 computes them exactly."""

_TOPICS = 8  # number of random texts around which a model with a share below 1 reads
_TYPICAL = 40  # passages nearest to a description, from which the model learns the words that go with it
_RECALLED = 1.0  # weight of those passages relative to the description itself
_DESCRIPTION = 0.5  # weight of the unchanged description relative to that difference
_AGAINST_OTHERS = 0.4  # how much of the other labels' mean description is taken off the label's own
_OTHERS = 0.5  # weight of the comparison with the other labels' words rather than with all texts, in [0, 1]
_COMMON = 0.03  # share of texts above which a word is too common to name a label
_SHORT_NAME, _SHORT_WORD = 3, 4  # letters of the shortest word that can name a label, and that can describe it
_LONGEST = 3  # words of a phrase
_SHORTEST = 4  # letters of a phrase's first and last word
_USUAL = 0.25  # share of texts above which a word neither begins nor ends a phrase, as no English stop word does
_TWICE = 2  # minimum number of passages with a phrase
_CHOICE = 3  # number of candidates for each requested phrase
_LEAST = 1e-3  # of a score, so that what tells nothing apart comes last and not never


@dataclass(frozen=True, slots=True, kw_only=True)
class Sense:
    """Meaning of a label for a model.

    Attributes:
        vector: (dimensions,) float32, unit norm.
        words: Ratio of each word's frequency under the label to its frequency under the other labels.
        terms: Rare words in the label's description, as token sequences, even if the model has never read them. If
            there is no description, these are the words of the label's name that consist of letters. Empty for a
            heading under which the model has read texts.
        passages: (n,) indices of the texts that the model may write from: the texts under the label if it is a heading
            with texts, and otherwise all texts that the model has read.
    """

    vector: Vector
    words: dict[str, float]
    terms: tuple[Sentence, ...]
    passages: NDArray[np.intp]


class Phrases:
    """The phrases that occur in a collection of texts.

    Args:
        texts: The sentences of each text.
    """

    def __init__(self, texts: Sequence[Sequence[Sentence]]) -> None:
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        words = Counter(word for text in texts for word in {bare(token) for part in text for token in part})
        self._grammar = ENGLISH_STOP_WORDS | {word for word, times in words.items() if times > _USUAL * len(texts) > 1}
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


class TextLibrary:
    """The texts that a model has read.

    Args:
        texts: All texts that the model may read.
        encoder: Encoder of the texts.
        share: Fraction of the texts that is read; if below 1, only the texts nearest to a few random texts are read.
        seed: Experiment seed for the draw of the random texts.
        name: The model's name, which also determines the draw, so that the models of one experiment read different
            subsets.
        headings: Headings under which each text occurs, normalised by `common.sections.normal_heading`; if empty, no
            headings are known.

    Attributes:
        vectors: (texts, dimensions) float32, unit norm, after the mean of all texts is subtracted.
        whole: `vectors` as integers, with norm `NORM`.
        parts: The sentences of each text.
        words: The normalised words of each text; `times` counts the texts in which each occurs.
        common: Words that occur in too many texts to characterise a label.
        between: Counts of the tokens that occur between each pair of tokens, in all sentences.
        known: The texts in normal form.
    """

    def __init__(
        self,
        texts: tuple[str, ...],
        encoder: TextEncoder,
        share: float,
        seed: int,
        name: str,
        *,
        headings: tuple[frozenset[str], ...] = (),
    ) -> None:
        raw = _encoded(texts, encoder)
        # Off the mean, what all texts have in common no longer makes them all alike.
        self._mean = raw.mean(axis=0, dtype=np.float64).astype(np.float32)
        vectors = self.centred(raw)
        if share < 1:
            rng = experiment(seed, "embedded model", name, "read")
            topics = vectors[rng.choice(len(texts), size=min(_TOPICS, len(texts)), replace=False)]
            order = np.argsort(-(whole_numbers(vectors) @ whole_numbers(topics).T).max(axis=1), kind="stable")
            read_texts = np.sort(order[: max(1, round(share * len(texts)))])
            texts, vectors = tuple(texts[at] for at in read_texts), vectors[read_texts]
            headings = tuple(headings[at] for at in read_texts) if headings else ()
        self.vectors = vectors
        self.whole = whole_numbers(vectors)
        self.parts = [sentences(text) for text in texts]
        self.between = Between([part for parts in self.parts for part in parts])
        self.words = [frozenset(bare(token) for part in parts for token in part) for parts in self.parts]
        self.times = Counter(word for words in self.words for word in words)
        self.common = frozenset(word for word, count in self.times.items() if count > _COMMON * len(texts))
        self._encoder, self._headings = encoder, headings
        self._senses: dict[tuple[tuple[str, str], ...], dict[str, Sense]] = {}
        self.known = frozenset(normal_words(text) for text in texts)

    def sense(self, labels: tuple[tuple[str, str], ...]) -> dict[str, Sense]:
        """Return the sense of each label, computed once for each set of labels.

        The vector and the words are taken from the passages nearest to the label's description, relative to the
        passages of the other labels (relevance feedback: Rocchio 1971 for the vector, Lavrenko and Croft 2001 for the
        words). If the label is a heading under which there are texts, these texts are the passages, and the description
        is not used.
        """
        if labels not in self._senses:
            raw = self.centred(self._encoder.encode([describe_label(*label) for label in labels]))
            apart, everything = _apart(raw), np.arange(len(self.parts))
            under = [self._under(label) for label, _ in labels]
            nearest = [np.argsort(-row, kind="stable")[:_TYPICAL] for row in whole_numbers(apart) @ self.whole.T]
            tops = [section if len(section) else top for section, top in zip(under, nearest, strict=True)]
            recalled = _apart(np.stack([self.vectors[top].mean(axis=0) for top in tops]))
            seen = [Counter(word for at in top for word in self.words[at]) for top in tops]
            sizes = list(map(len, tops))
            made: dict[str, Sense] = {}
            for at, (label, _) in enumerate(labels):
                vector = unit(apart[at] + _DESCRIPTION * raw[at] + _RECALLED * recalled[at])
                words, terms = self._telling(seen, at, sizes), self._terms(labels, label)
                made[label] = Sense(vector=vector, words=words, terms=terms, passages=everything)
                if len(under[at]):
                    made[label] = replace(made[label], vector=recalled[at], terms=(), passages=under[at])
            self._senses[labels] = made
        return self._senses[labels]

    def _under(self, heading: str) -> NDArray[np.intp]:
        """Return the indices of the texts under a heading."""
        name = sections.normal_heading(heading)
        return np.array([at for at, names in enumerate(self._headings) if name in names], dtype=np.intp)

    def _telling(self, seen: list[Counter[str]], at: int, sizes: list[int]) -> dict[str, float]:
        """Return the ratio of each word's frequency in a label's passages to its mean frequency elsewhere.

        The mean is geometric, and is taken over the other labels' passages and all texts.
        """
        total = sum(seen, Counter[str]())
        count = sizes[at]
        rest = sum(sizes) - count or count
        ratios = {}
        for word, times in total.items():
            if times > 1:
                share = (seen[at][word] + 1) / (count + 2)
                others = (times - seen[at][word] + 1) / (rest + 2)
                everywhere = (self.times[word] + 1) / (len(self.parts) + 2)
                ratios[word] = share / others**_OTHERS / everywhere ** (1 - _OTHERS)
        return ratios

    def _terms(self, labels: tuple[tuple[str, str], ...], target: str) -> tuple[Sentence, ...]:
        others = {bare(word) for label in labels if label[0] != target for word in tokenise(describe_label(*label))}
        runs: list[list[str]] = [[]]
        names = {bare(token) for token in tokenise(describe_label(target, ""))}
        description = dict(labels)[target]
        # A label that is not described may be called by a code, which is no word of its texts.
        bare_name = normal_words(description) == normal_words(target.replace("_", " "))
        for token in tokenise(description):
            word = bare(token)
            # Short words are grammar, unless they are the label's name: "age limit", "ATM".
            telling = word[:1].isalnum() and len(word) >= (_SHORT_NAME if word in names else _SHORT_WORD)
            if telling and word not in self.common and word not in others and (word.isalpha() or not bare_name):
                runs[-1].append(f" {word}")
            elif runs[-1]:
                runs.append([])
        return tuple(dict.fromkeys(tuple(run) for run in runs if run))

    @cached_property
    def phrases(self) -> Phrases:
        """The phrases of the texts, collected when a request first asks for phrases."""
        return Phrases(self.parts)

    def centred(self, raw: Vector) -> Vector:
        """Return the vectors minus the mean of all texts that were read, scaled to unit norm."""
        return unit(raw - self._mean)


def headings_of(texts: Sequence[str], examples: Sequence[Example]) -> tuple[frozenset[str], ...]:
    """Return the headings under which each text occurs in the examples, in normal form; empty without sections."""
    named = defaultdict[str, set[str]](set)
    for example in examples:
        if example.section and example.topic:
            named[example.text].add(sections.normal_heading(example.topic))
    return tuple(frozenset(named[text]) for text in texts) if named else ()


@lru_cache(maxsize=1)
def _encoded(texts: tuple[str, ...], encoder: TextEncoder) -> Vector:
    """Return the texts' vectors, (texts, dimensions) float32 of unit norm, computed once for all models of a run."""
    return encoder.encode(texts)


def describe_label(label: str, description: str) -> str:
    """Return a label's name and description in one text."""
    return f"{label.replace('_', ' ')}: {description}"


def _apart(vectors: Vector) -> Vector:
    """Subtract a fraction of the other vectors' mean from each; return (labels, dimensions) float32, unit norm."""
    rest = (vectors.sum(axis=0) - vectors) / max(1, len(vectors) - 1)
    return unit(vectors - np.float32(_AGAINST_OTHERS) * rest)


def unit(vectors: Vector) -> Vector:
    """Return the vectors scaled to unit norm; vectors with a norm below 1e-6 stay shorter."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: Vector = (vectors / np.maximum(norms, np.float32(1e-6))).astype(np.float32)
    return scaled


def whole_numbers(vectors: Vector) -> Vector:
    """Return unit vectors scaled to norm `NORM` and rounded, so that inner products are exact in any batch."""
    whole: Vector = np.rint(vectors * np.float32(NORM))
    return whole
