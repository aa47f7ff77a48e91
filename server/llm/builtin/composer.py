"""Composition of the texts for one request from the passages that were retrieved for it."""

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from server.llm.base import Request
from server.llm.builtin.drafts import Drafts, word_factors
from server.llm.builtin.library import Sense, TextLibrary
from server.llm.builtin.ngram import Sentence, bare, normal_words, tokenise, untokenise

_ATTEMPTS = 8  # number of attempts to write a text that is not a copy
_LOOSER = 0.1  # increase of the looseness at each further attempt
_STEM = 6  # number of first letters by which two forms of a word are equal
_EXEMPLAR, _OTHER_EXEMPLARS = 0.05, 0.03  # weight of the leading exemplar and of all others; all passages have 1
_SOURCE = 3.0  # weight of a text to paraphrase
_WIDTH = 0.15  # width of the window of relative positions from which a sentence of a longer text comes
_SAME_HEAD, _REPEATED, _OTHER_LINE = 4.0, 0.02, 0.05  # factors: same head as the model, repeated head, other line break
_PARAPHRASE_BLANKS, _CROSS_BLANKS = 0.25, 0.1
_KEPT_HEADS = 0.8  # share of a longer text's sentences with the same head as the leader's
_SHAPED, _SHAPED_SENTENCE = 0.7, 0.1  # weight of the passages that show a shape, for a longer text and for a sentence
_PARENTS = 2
_TOKENS_PER_WORD = 1.15  # with punctuation


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A text that serves as source material for new texts.

    Attributes:
        parts: Sentences of the text, as tokens.
        vector: (dimensions,) float32, unit norm.
        near: Cosine similarity to the request's target.
    """

    parts: Sequence[Sentence]
    vector: NDArray[np.float32]
    near: float


class TextComposer:
    """Composes the texts for one request.

    Args:
        request: The request.
        passages: Public texts near the target, at least one.
        anchors: Good exemplars, or source texts.
        library: All texts that the model has read.
        copying: Whether a text may be a copy of a public one.
        shapes: Number of passages, at the end of `passages`, that serve only as models for a text's structure.
        senses: Senses of the requested labels.
        focus, noise: As in `BuiltinModel`.
        seed: Seed of the request's random numbers.
    """

    def __init__(
        self,
        *,
        request: Request,
        passages: Sequence[Passage],
        anchors: Sequence[Passage],
        library: TextLibrary,
        copying: bool,
        shapes: int,
        senses: Sequence[Sense],
        focus: float,
        noise: float,
        seed: int,
    ) -> None:
        self._request, self._passages, self._anchors = request, passages, anchors
        self._between, self._focus, self._noise, self._loose = library.between, focus, noise, noise
        self._known = frozenset[str]() if copying else library.known
        self._shapes, self._terms, self._common = shapes, [sense.terms for sense in senses], library.common
        self._rng = random.Random(seed)  # noqa: S311 — an experiment's draws, no secret
        texts = list(enumerate([*passages, *anchors]))
        rows = [(part, owner, at, len(text.parts)) for owner, text in texts for at, part in enumerate(text.parts)]
        self._pool = [part for part, _, _, _ in rows]
        self._owner = np.array([owner for _, owner, _, _ in rows])
        self._position = np.array([(at + 0.5) / size for _, _, at, size in rows])
        heads = [_head(part) for part in self._pool]
        self._head_number = {head: number for number, head in enumerate(dict.fromkeys(heads))}
        self._heads = np.array([self._head_number[head] for head in heads])
        self._counts = Counter(heads)
        self._lines = np.array(["\n" in part[0] for part in self._pool])
        self._factors = word_factors(request, senses)
        self._drafts = Drafts(self._pool, self._factors, library.between)

    def texts(self) -> tuple[str, ...]:
        """Return up to `n` new texts, none of which copies a public text, a text in the request, or another result."""
        request = self._request
        forms = {normal_words(text) for text in request.good + request.bad + request.source} | {""}
        texts: list[str] = []
        for _ in range(request.n):
            for attempt in range(_ATTEMPTS):
                self._loose = min(1.0, self._noise + _LOOSER * attempt)
                text = self._text(attempt)
                form = normal_words(text)
                if form not in forms and form not in self._known:
                    forms.add(form)
                    texts.append(text)
                    break
        return tuple(texts)

    def _text(self, attempt: int) -> str:
        request = self._request
        if request.must and not request.source:
            return untokenise([token for part in self._keyphrase_sentences() for token in part])
        if len(request.source) == _PARENTS:
            parts = self._crossover()
        elif request.blanks:
            parts = self._refill(self._anchors[0].parts, min(1.0, request.blanks * (1 + attempt / 2)), strict=False)
        elif request.source and not request.abstract:
            parts = self._refill(self._imitate(self._anchors[0]), _PARAPHRASE_BLANKS, strict=True)
        else:
            parts = self._imitate(self._rng.choice(self._anchors) if self._anchors else None)
            for terms in self._terms:
                parts = self._insert_term(parts, terms)
        text = untokenise([token for part in parts for token in part])
        missing = [self._around(tokenise(phrase)) for phrase in request.must if phrase not in text]
        return untokenise([text, *(token for part in missing for token in part)])

    def _keyphrase_sentences(self) -> list[Sentence]:
        """Return sentences with one keyphrase each, or with several if the requested length is short."""
        phrases = [tokenise(phrase) for phrase in self._request.must]
        groups = len(phrases)
        if self._request.words is not None:
            mean_tokens = sum(map(len, self._pool)) / len(self._pool)
            groups = min(groups, max(1, round(self._request.words * _TOKENS_PER_WORD / mean_tokens)))
        parts = []
        for group in range(groups):
            first, *rest = phrases[group * len(phrases) // groups : (group + 1) * len(phrases) // groups]
            parts.append(self._around(sum(((",", *phrase) for phrase in rest), first)))
        return parts

    def _imitate(self, leader: Passage | None) -> list[Sentence]:
        """Return a text structured like the leader or, if that is None or an abstract, like a random passage."""
        shape = None if self._request.abstract else leader
        shape = shape or self._rng.choice(self._passages[-self._shapes :] if self._shapes else self._passages)
        plan = self._plan(shape.parts)
        weights = self._lean(leader, _SHAPED if len(plan) > 1 else _SHAPED_SENTENCE)[self._owner]
        if len(plan) == 1:
            return [self._drafts.best((), weights.tolist(), self._loose, self._rng)]
        parts: list[Sentence] = []
        for at, model in enumerate(plan):
            heads = {_head(part) for part in parts}
            local_weights = self._windowed(weights, (at + 0.5) / len(plan), model, heads).tolist()
            # The only continuation of a head that occurs once is the leader's own.
            same_head = self._counts[_head(model)] > 1 and self._rng.random() < _KEPT_HEADS
            start = model if same_head else self._rng.choices(self._pool, local_weights)[0]
            parts.append(self._drafts.best(start[:2], local_weights, self._loose, self._rng))
        return parts

    def _insert_term(self, parts: list[Sentence], terms: Sequence[Sentence]) -> list[Sentence]:
        """Replace an uncommon word with a random term of a label, unless the text already contains such a term."""
        stems = {bare(token)[:_STEM] for part in parts for token in part}
        if not terms or any(stems.issuperset(bare(token)[:_STEM] for token in term) for term in terms):
            return parts
        words = [
            (at, place)
            for at, part in enumerate(parts)
            for place, token in enumerate(part)
            if bare(token).isalpha() and "\n" not in token
        ]
        rare = [(at, place) for at, place in words if bare(parts[at][place]) not in self._common]
        places = rare or words[-1:]
        if not places:
            return parts
        at, place = self._rng.choice(places)
        parts[at] = parts[at][:place] + self._rng.choice(terms) + parts[at][place + 1 :]
        return parts

    def _lean(self, leader: Passage | None, shaped: float) -> NDArray[np.float64]:
        """Draw weights of passages and exemplars for one text; weights are higher near the target and the leader."""
        near = np.array([passage.near for passage in self._passages])
        if leader is not None:
            near = near + self._vectors @ leader.vector
        lean = np.exp(self._focus * (near - near.max()))
        if self._shapes:
            lean[: -self._shapes] /= lean[: -self._shapes].sum()
            lean[: -self._shapes] *= 1 - shaped
            lean[-self._shapes :] *= shaped / lean[-self._shapes :].sum()
        else:
            lean /= lean.sum()
        others = max(1, sum(anchor is not leader for anchor in self._anchors))
        leading = _SOURCE if self._request.source or self._request.good_must else _EXEMPLAR
        shares = [leading if anchor is leader else _OTHER_EXEMPLARS / others for anchor in self._anchors]
        factors = np.array([self._rng.expovariate(1) for _ in range(len(lean) + len(shares))])
        weights: NDArray[np.float64] = np.concatenate([lean, shares]) * factors + 1e-9
        return weights

    @cached_property
    def _vectors(self) -> NDArray[np.float32]:
        return np.stack([passage.vector for passage in self._passages])

    def _plan(self, parts: Sequence[Sentence]) -> list[Sentence]:
        """Return the sentences to imitate, with some repeated or left out to reach the requested length."""
        if self._request.words is None:
            return list(parts)
        mean_tokens = max(1.0, sum(map(len, parts)) / len(parts))
        count = max(1, round(self._request.words * _TOKENS_PER_WORD / mean_tokens))
        return [parts[at * len(parts) // count] for at in range(count)]

    def _windowed(
        self, weights: NDArray[np.float64], place: float, model: Sentence, heads: set[str]
    ) -> NDArray[np.float64]:
        """Return the weights of sentences for one position in a text.

        Sentences with a similar position and a similar beginning get more weight.
        """
        local_weights = weights * np.exp(-np.abs(self._position - place) / _WIDTH)
        factors = np.ones(len(self._head_number) + 1)
        factors[self._head_number.get(_head(model), -1)] = _SAME_HEAD
        factors[[self._head_number.get(head, -1) for head in heads]] *= _REPEATED
        local_weights *= factors[self._heads]
        local_weights *= np.where(self._lines == ("\n" in model[0]), 1.0, _OTHER_LINE)
        return local_weights

    def _refill(self, parts: Sequence[Sentence], share: float, *, strict: bool) -> list[Sentence]:
        """Replace a fraction `share` of the words in the sentences with other words that fit."""
        sentences = []
        for part in parts:
            words = [at for at, token in enumerate(part) if bare(token)[:1].isalnum()]
            count = min(len(words), math.ceil(share * len(words)))
            holes = self._rng.sample(words, count)
            sentences.append(self._between.refill(part, holes, self._factors, self._rng, strict=strict))
        return sentences

    def _crossover(self) -> list[Sentence]:
        """Return a crossover of two parents: alternating sentences or, if either has only one, a head and a tail."""
        first, second = (anchor.parts for anchor in self._rng.sample(list(self._anchors), _PARENTS))
        if len(first) == 1 or len(second) == 1:
            whole = [tuple(token for part in parts for token in part) for parts in (first, second)]
            return self._refill([self._between.cross(whole[0], whole[1], self._rng)], _CROSS_BLANKS, strict=True)
        size = round((len(first) + len(second)) / 2)
        turn = self._rng.randrange(_PARENTS)
        sequence = [(first, second)[(at + turn) % _PARENTS] for at in range(size)]
        return self._refill(
            [parts[at * len(parts) // size] for at, parts in enumerate(sequence)], _CROSS_BLANKS, strict=True
        )

    def _around(self, phrase: Sentence) -> Sentence:
        """Return one sentence that contains the phrase."""
        leader = self._rng.choice(self._anchors) if self._request.good_must else None
        weights = self._lean(leader, _SHAPED_SENTENCE)[self._owner].tolist()
        return self._drafts.around(phrase, weights, self._loose, self._rng)


def _head(part: Sentence) -> str:
    """Return the first two tokens of a sentence, so that a heading is taken together with its colon."""
    return "".join(part[:2])
