"""Writes the texts of one request out of the passages that were found for it."""

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from server.llm.base import Request
from server.llm.builtin.ngram import Between, Sentence, Walk, bare, cross, normal, tokenise, untokenise

_DRAFTS = 2  # of each sentence, of which the best is kept
_ATTEMPTS = 8  # at a text that is no copy
_LOOSER = 0.1  # more looseness at each further attempt
_STEM = 6  # letters that make two forms of a word the same
_EXEMPLAR, _OTHER_EXEMPLARS = 0.05, 0.03  # weight of the leading exemplar, and of all others, beside all passages'
_SOURCE = 3.0  # the same for a text that is to be said in other words
_PUSH = 0.8  # exponent of the ratio of a word's frequencies in good and bad exemplars
_MEANT, _MOST = 0.5, 6.0  # exponent of the ratio that the label gives a word, and its bound
_UNHEARD, _COPIED = 0.15, 0.1  # off a draft's score: for each run of three words never read, and for a copy
_WIDTH = 0.15  # of the window of relative positions from which a sentence of a longer text comes
_SAME_HEAD, _REPEATED, _OTHER_LINE = 4.0, 0.02, 0.05  # factors on a sentence that begins like, again, or on a new line
_PARAPHRASE_BLANKS, _CROSS_BLANKS = 0.25, 0.1
_KEPT_HEADS = 0.8  # share of a longer text's sentences that begin as the leader's do
_SHAPED, _SHAPED_SENTENCE = 0.7, 0.1  # weight of the passages that show a shape: of a longer text, of a sentence
_PARENTS = 2
_TOKENS_PER_WORD = 1.15  # punctuation counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A text that the model has before it.

    Attributes:
        parts: Its sentences, as tokens.
        vector: (dimensions,) float32, unit norm.
        near: Cosine to the request's target.
    """

    parts: Sequence[Sentence]
    vector: NDArray[np.float32]
    near: float


class TextComposer:
    """One request's texts.

    Args:
        request: What is asked.
        passages: Public texts near the target, at least one.
        anchors: The good exemplars, or the source texts.
        between: All that the model has read, by neighbours.
        known: Normal forms of the public texts, none of which may come back.
        shapes: How many passages, the last ones, only show what a text looks like.
        meaning: Words that the label brings to mind, with how much more often than other labels do.
        terms: Rare words of the label's name and description, in runs.
        common: Words that stand in many texts.
        focus: Inverse temperature of cosines.
        noise: Share of words written with an eye on the last word alone.
        seed: Seeds the request's draws.
    """

    def __init__(
        self,
        *,
        request: Request,
        passages: Sequence[Passage],
        anchors: Sequence[Passage],
        between: Between,
        known: frozenset[str],
        shapes: int,
        meaning: Mapping[str, float],
        terms: Sequence[Sentence],
        common: frozenset[str],
        focus: float,
        noise: float,
        seed: int,
    ) -> None:
        self._request, self._passages, self._anchors = request, passages, anchors
        self._between, self._known, self._focus, self._noise, self._loose = between, known, focus, noise, noise
        self._shapes, self._terms, self._common = shapes, terms, common
        self._rng = random.Random(seed)  # noqa: S311 — an experiment's draws, no secret
        texts = list(enumerate([*passages, *anchors]))
        owned = [(part, owner, at, len(text.parts)) for owner, text in texts for at, part in enumerate(text.parts)]
        self._pool = [part for part, _, _, _ in owned]
        self._owner = np.array([owner for _, owner, _, _ in owned])
        self._position = np.array([(at + 0.5) / size for _, _, at, size in owned])
        heads = [_head(part) for part in self._pool]
        self._head_number = {head: number for number, head in enumerate(dict.fromkeys(heads))}
        self._heads = np.array([self._head_number[head] for head in heads])
        self._counts = Counter(heads)
        self._lines = np.array(["\n" in part[0] for part in self._pool])
        self._boost = _boost(request, meaning)
        self._merit = {word: math.log(factor) for word, factor in self._boost.items()}

    def texts(self) -> tuple[str, ...]:
        """At most `n` texts, none a copy of a public text, of one that the request shows, or of another."""
        request = self._request
        taken = {normal(text) for text in request.good + request.bad + request.source} | {""}
        written: list[str] = []
        for _ in range(request.n):
            for attempt in range(_ATTEMPTS):
                self._loose = min(1.0, self._noise + _LOOSER * attempt)
                text = self._text(attempt)
                form = normal(text)
                if form not in taken and form not in self._known:
                    taken.add(form)
                    written.append(text)
                    break
        return tuple(written)

    def _text(self, attempt: int) -> str:
        request = self._request
        if request.must and not request.source:
            return untokenise([token for part in self._holding() for token in part])
        if len(request.source) == _PARENTS:
            parts = self._crossed()
        elif request.blanks:
            parts = self._refilled(self._anchors[0].parts, min(1.0, request.blanks * (1 + attempt / 2)), strict=False)
        elif request.source and not request.abstract:
            parts = self._refilled(self._composed(self._anchors[0]), _PARAPHRASE_BLANKS, strict=True)
        else:
            parts = self._named(self._composed(self._rng.choice(self._anchors) if self._anchors else None))
        text = untokenise([token for part in parts for token in part])
        missing = [self._around(tokenise(phrase)) for phrase in request.must if phrase not in text]
        return untokenise([text, *(token for part in missing for token in part)])

    def _holding(self) -> list[Sentence]:
        """Sentences that hold the keyphrases, one each, or several together where the wanted length is short."""
        phrases = [tokenise(phrase) for phrase in self._request.must]
        groups = len(phrases)
        if self._request.words is not None:
            usual = sum(map(len, self._pool)) / len(self._pool)
            groups = min(groups, max(1, round(self._request.words * _TOKENS_PER_WORD / usual)))
        parts = []
        for group in range(groups):
            first, *rest = phrases[group * len(phrases) // groups : (group + 1) * len(phrases) // groups]
            parts.append(self._around(sum(((",", *phrase) for phrase in rest), first)))
        return parts

    def _composed(self, leader: Passage | None) -> list[Sentence]:
        """A text built like the leading exemplar, or like a passage drawn where there is none, or only an abstract."""
        shape = None if self._request.abstract else leader
        shape = shape or self._rng.choice(self._passages[-self._shapes :] if self._shapes else self._passages)
        plan = self._plan(shape.parts)
        weights = self._lean(leader, _SHAPED if len(plan) > 1 else _SHAPED_SENTENCE)[self._owner]
        if len(plan) == 1:
            return [self._best((), weights.tolist())]
        parts: list[Sentence] = []
        for at, model in enumerate(plan):
            used = {_head(part) for part in parts}
            here = self._windowed(weights, (at + 0.5) / len(plan), model, used).tolist()
            # A beginning that no other text shares could only go on as the leader does.
            kept = self._counts[_head(model)] > 1 and self._rng.random() < _KEPT_HEADS
            start = model if kept else self._rng.choices(self._pool, here)[0]
            parts.append(self._best(start[:2], here))
        return parts

    def _named(self, parts: list[Sentence]) -> list[Sentence]:
        """The text with a term of its label in place of its rarest kind of word, if it has no such term at all."""
        stems = {bare(token)[:_STEM] for part in parts for token in part}
        if not self._terms or any(stems.issuperset(bare(token)[:_STEM] for token in term) for term in self._terms):
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
        parts[at] = parts[at][:place] + self._rng.choice(self._terms) + parts[at][place + 1 :]
        return parts

    def _lean(self, leader: Passage | None, shaped: float) -> NDArray[np.float64]:
        """Weight of each passage and exemplar for one text: near the target, near the leader, and some luck."""
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
        own = _SOURCE if self._request.source or self._request.good_must else _EXEMPLAR
        shares = [own if anchor is leader else _OTHER_EXEMPLARS / others for anchor in self._anchors]
        luck = np.array([self._rng.expovariate(1) for _ in range(len(lean) + len(shares))])
        leaning: NDArray[np.float64] = np.concatenate([lean, shares]) * luck + 1e-9
        return leaning

    @cached_property
    def _vectors(self) -> NDArray[np.float32]:
        return np.stack([passage.vector for passage in self._passages])

    def _plan(self, parts: Sequence[Sentence]) -> list[Sentence]:
        """The sentences to imitate, one for each to be written, so many that the wanted length is met."""
        if self._request.words is None:
            return list(parts)
        usual = max(1.0, sum(map(len, parts)) / len(parts))
        count = max(1, round(self._request.words * _TOKENS_PER_WORD / usual))
        return [parts[at * len(parts) // count] for at in range(count)]

    def _windowed(
        self, weights: NDArray[np.float64], place: float, model: Sentence, used: set[str]
    ) -> NDArray[np.float64]:
        """The weights for one sentence of a longer text: those from about the same place, of the same make."""
        here = weights * np.exp(-np.abs(self._position - place) / _WIDTH)
        factors = np.ones(len(self._head_number) + 1)
        factors[self._head_number.get(_head(model), -1)] = _SAME_HEAD
        factors[[self._head_number.get(head, -1) for head in used]] *= _REPEATED
        here *= factors[self._heads]
        here *= np.where(self._lines == ("\n" in model[0]), 1.0, _OTHER_LINE)
        return here

    def _best(self, begin: Sequence[str], weights: Sequence[float]) -> Sentence:
        """The best of some drafts of one sentence."""
        best, top = tuple(begin), -math.inf
        for _ in range(_DRAFTS):
            draft = self._walk.write(begin, weights, self._loose, self._rng)
            score = self._score(draft)
            if score > top:
                best, top = draft, score
        return best

    def _score(self, draft: Sentence) -> float:
        """Merit of its words, less what reads badly and what is copied."""
        merit = math.fsum(self._merit.get(word, 0.0) for word in {bare(token) for token in draft})
        score = merit / math.sqrt(len(draft) + 1) - _UNHEARD * self._between.unheard(draft)
        return score - (_COPIED if draft in self._copies else 0.0)

    @cached_property
    def _copies(self) -> frozenset[Sentence]:
        return frozenset(self._pool)

    @cached_property
    def _walk(self) -> Walk:
        return Walk(self._pool, self._boost)

    @cached_property
    def _backward(self) -> Walk:
        return Walk(self._pool, self._boost, backward=True)

    def _refilled(self, parts: Sequence[Sentence], share: float, *, strict: bool) -> list[Sentence]:
        """Sentences with a share of their words replaced by others that fit."""
        filled = []
        for part in parts:
            words = [at for at, token in enumerate(part) if bare(token)[:1].isalnum()]
            count = min(len(words), math.ceil(share * len(words)))
            holes = self._rng.sample(words, count)
            filled.append(self._between.refill(part, holes, self._boost, self._rng, strict=strict))
        return filled

    def _crossed(self) -> list[Sentence]:
        """A text of two parents: by turns for several sentences, else the head of one and the tail of the other."""
        first, second = (anchor.parts for anchor in self._rng.sample(list(self._anchors), _PARENTS))
        if len(first) == 1 or len(second) == 1:
            whole = [tuple(token for part in parts for token in part) for parts in (first, second)]
            joined = cross(
                whole[0], whole[1], lambda left, right: self._between.after.get(left, {}).get(right, 0), self._rng
            )
            return self._refilled([joined], _CROSS_BLANKS, strict=True)
        size = round((len(first) + len(second)) / 2)
        turn = self._rng.randrange(_PARENTS)
        taken = [(first, second)[(at + turn) % _PARENTS] for at in range(size)]
        return self._refilled(
            [parts[at * len(parts) // size] for at, parts in enumerate(taken)], _CROSS_BLANKS, strict=True
        )

    def _around(self, tokens: Sentence) -> Sentence:
        """One sentence that holds a keyphrase, written outward from it in both directions."""
        leader = self._rng.choice(self._anchors) if self._request.good_must else None
        spread = self._lean(leader, _SHAPED_SENTENCE)[self._owner].tolist()
        ended = self._walk.write(tokens, spread, self._loose, self._rng)
        begun = self._backward.write(ended[::-1], spread, self._loose, self._rng)[::-1]
        if len(begun) > len(tokens):
            return begun
        host = self._best((), spread)  # never read: the phrase takes a place in a sentence about the rest
        at = self._rng.randrange(len(host) // 2, len(host)) if host else 0
        return host[:at] + tokens + host[at:]


def _head(part: Sentence) -> str:
    """How a sentence begins: two tokens, so that a heading and its colon count as one."""
    return "".join(part[:2])


def _boost(request: Request, meaning: Mapping[str, float]) -> dict[str, float]:
    """Factor on each word: what the label brings to mind, and up with good exemplars, down with bad ones."""
    boost = {word: min(max(ratio, 1 / _MOST), _MOST) ** _MEANT for word, ratio in meaning.items()}
    if request.bad:
        good, bad = _document_counts(request.good), _document_counts(request.bad)
        for word in good.keys() | bad.keys():
            ratio = ((good[word] + 0.5) / (len(request.good) + 1)) / ((bad[word] + 0.5) / (len(request.bad) + 1))
            boost[word] = boost.get(word, 1.0) * ratio**_PUSH
    return boost


def _document_counts(texts: Sequence[str]) -> Counter[str]:
    return Counter(word for text in texts for word in {bare(token) for token in tokenise(text)})
