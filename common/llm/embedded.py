"""The language model that needs no network, no weights and no key: small, and honest about it.

It has read public text and nothing else. For each request it looks for the passages of its reading that lie nearest to
what is asked (label and description against the other labels', good exemplars and beyond them away from the bad ones,
source texts, keyphrases), and writes from a local n-gram model of those passages and the exemplars (`writer`). What it
writes comes out of the fields of the request; no task is built in.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from common.errors import ProviderError
from common.llm.base import Arrived, Reply, Request
from common.llm.ngram import Between, Sentence, bare, normal, sentences, tokenise
from common.llm.writer import Passage, Writer
from common.rng import experiment, stream
from common.validate import at_least, in_range, not_empty, positive

Vector = NDArray[np.float32]

_NORM = 4000.0  # whole numbers of this norm have products below 2^24, which float32 sums exactly in any order
_SHORTLIST = 256  # passages that one request looks at
_PASSAGES = 32  # of which it reads these again
_SHAPES = 16  # read beside them where no exemplar shows what a text looks like
_ALIKE = 0.2  # share of all that was read, most like one text drawn at random, from which these come
_TYPICAL = 40  # passages nearest to a description, from which the model learns the words that go with it
_OWN = 0.5  # weight of the description as it stands beside that difference
_OTHERS = 0.5  # how far words are told from the other labels' rather than from all that was read, in [0, 1]
_RECALLED = 1.0  # weight of those passages beside the description itself
_COMMON = 0.03  # share of texts above which a word is too common to name a label
_SHORT_NAME, _SHORT_WORD = 3, 4  # letters of the shortest word that can name a label, and that can describe it
_CONTRAST = 1.0  # 1 puts the good exemplars midway between the bad ones and the target, as the contrastive prompt asks
_AGAINST_OTHERS = 0.4  # how much of the other labels' mean description is taken off the label's own
_DESCRIPTION = 0.5  # weight of label and description beside exemplars
_TOKENS_PER_WORD = 1.3
_USUAL_WORDS = 20


class TextEncoder(Protocol):
    """Whatever turns texts into vectors."""

    def encode(self, texts: Sequence[str]) -> Vector:
        """(len(texts), dimensions) float32, unit norm."""


class Embedded:
    """A retrieval-weighted n-gram model of public text.

    Args:
        name: How reports and candidates name it.
        public_texts: All that it may read.
        encoder: Tells which texts are near each other.
        share: Share of the public text that it has read; below 1, the part on topics drawn at random.
        focus: How strictly it keeps to the nearest passages, as an inverse temperature of cosines.
        noise: Share of words that it writes with an eye on the last word alone, in [0, 1].
        experiment_seed: Decides what it has read and, with a request's own seed, what it draws.

    Raises:
        ProviderError: There is no public text to read.
    """

    def __init__(
        self,
        *,
        name: str,
        public_texts: Sequence[str],
        encoder: TextEncoder,
        share: float = 1.0,
        focus: float = 8.0,
        noise: float = 0.1,
        experiment_seed: int = 0,
    ) -> None:
        not_empty(name=name)
        in_range(0.01, 1, share=share)
        positive(focus=focus)
        in_range(0, 1, noise=noise)
        at_least(0, experiment_seed=experiment_seed)
        self._texts = [text for text in dict.fromkeys(public_texts) if tokenise(text)]
        if not self._texts:
            raise ProviderError(
                f"the embedded model {name} has nothing to read",
                expected="public texts of the kind that is to be written",
                got="none",
                do="give it a file of public texts, or choose a model that brings its own knowledge",
            )
        read = hashlib.sha256("\x1f".join(self._texts).encode()).hexdigest()[:16]
        self.name = name
        self.identity = f"embedded/{name}/{share}/{focus}/{noise}/{experiment_seed}/{read}"
        self._encoder = encoder
        self._share, self._focus, self._noise, self._seed = share, focus, noise, experiment_seed

    def generate(self, requests: Sequence[Request], *, arrived: Arrived | None = None) -> list[Reply]:
        """See `Provider.generate`. Each reply is a function of this model and its request alone."""
        if not requests:
            return []
        vectors = self._vectors(requests)
        targets = np.stack([_target(request, vectors, self._library.sense(request.labels)) for request in requests])
        nearness = _whole(targets) @ self._library.whole.T / np.float32(_NORM**2)
        replies = []
        for place, request in enumerate(requests):
            texts = self._write(request, nearness[place], vectors)
            written = sum(len(text.split()) for text in texts)
            read = self.estimate(request)[0]
            replies.append(Reply(texts=texts, input_tokens=read, output_tokens=round(written * _TOKENS_PER_WORD)))
            if arrived is not None:
                arrived(place, replies[-1])
        return replies

    def estimate(self, request: Request) -> tuple[int, int]:
        """Tokens read and to be written, for the forecast; they cost nothing here."""
        fields = (request.good, request.bad, request.source, request.must, (request.description,))
        read = sum(len(text.split()) for field in fields for text in field)
        written = request.n * (request.words or _USUAL_WORDS)
        return round(read * _TOKENS_PER_WORD), round(written * _TOKENS_PER_WORD)

    @cached_property
    def _library(self) -> "_Library":
        """Read at the first request: a run that resumes from its cache never needs it."""
        return _Library(self._texts, self._encoder, self._share, self._seed, self.name)

    def _vectors(self, requests: Sequence[Request]) -> dict[str, Vector]:
        """Vectors of all that the requests show, each text encoded once."""
        shown = dict.fromkeys(text for request in requests for text in _shown(request))
        raw = self._library.centred(self._encoder.encode(list(shown)))
        return dict(zip(shown, raw, strict=True))

    def _write(self, request: Request, near: Vector, vectors: dict[str, Vector]) -> tuple[str, ...]:
        """One request: draw passages near the target, then write."""
        library = self._library
        sense = None if request.label is None else library.sense(request.labels)[request.label]
        rng = experiment(self._seed, "embedded model", self.name, request.seed)
        drawn = self._drawn(near, _PASSAGES, rng)
        shown = request.good + request.source
        anchors = [Passage(parts=sentences(text), vector=vectors[text], near=1.0) for text in shown]
        if not shown:
            # Nothing shows what a text looks like: some text that was read does, and of those like it the near ones.
            shape = library.vectors[rng.integers(len(near))]
            like = _whole(shape) @ library.whole.T
            alike = like >= np.quantile(like, 1 - _ALIKE, method="higher")
            drawn = np.concatenate([drawn, self._drawn(np.where(alike, near, np.float32(-2)), _SHAPES, rng)])
        return Writer(
            request=request,
            passages=[
                Passage(parts=library.parts[at], vector=library.vectors[at], near=float(near[at])) for at in drawn
            ],
            shapes=0 if shown else min(_SHAPES, len(near)),
            meaning={} if sense is None else sense.words,
            terms=() if sense is None else sense.terms,
            common=library.common,
            anchors=anchors,
            between=library.between,
            known=library.known,
            focus=self._focus,
            noise=self._noise,
            seed=stream(self._seed, "embedded model", self.name, request.seed, "words"),
        ).texts()

    def _drawn(self, near: Vector, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Passages drawn without replacement in proportion to exp(focus · nearness), by Gumbel noise on the scores."""
        short = np.argpartition(-near, min(_SHORTLIST, len(near)) - 1)[:_SHORTLIST]
        short = short[np.lexsort((short, -near[short]))]
        scores = self._focus * near[short] + rng.gumbel(size=len(short))
        drawn: NDArray[np.intp] = short[np.argsort(-scores)[:count]]
        return drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sense:
    """What a label means to a model.

    Attributes:
        vector: (dimensions,) float32, unit norm.
        words: How much more often each word comes up than with the other labels.
        terms: Rare words of its own name and description, in runs, whether ever read or not.
    """

    vector: Vector
    words: dict[str, float]
    terms: tuple[Sentence, ...]


class _Library:
    """What a model has read: texts, their parts and their vectors."""

    def __init__(self, texts: list[str], encoder: TextEncoder, share: float, seed: int, name: str) -> None:
        raw = encoder.encode(texts)
        # Off the mean, what all texts have in common no longer makes them all alike.
        self._mean = raw.mean(axis=0, dtype=np.float64).astype(np.float32)
        vectors = self.centred(raw)
        if share < 1:
            rng = experiment(seed, "embedded model", name, "read")
            topics = vectors[rng.choice(len(texts), size=min(8, len(texts)), replace=False)]
            order = np.argsort(-np.round((vectors @ topics.T).max(axis=1), 4), kind="stable")
            kept = np.sort(order[: max(1, round(share * len(texts)))])
            texts, vectors = [texts[at] for at in kept], vectors[kept]
        self.vectors = vectors
        self.whole = _whole(vectors)
        self.parts = [sentences(text) for text in texts]
        self.between = Between([part for parts in self.parts for part in parts])
        self.words = [frozenset(bare(token) for part in parts for token in part) for parts in self.parts]
        self.times = Counter(word for words in self.words for word in words)
        self.common = frozenset(word for word, count in self.times.items() if count > _COMMON * len(texts))
        self._encoder = encoder
        self._senses: dict[tuple[tuple[str, str], ...], dict[str, _Sense]] = {}
        self.known = frozenset(normal(text) for text in texts)

    def sense(self, labels: tuple[tuple[str, str], ...]) -> dict[str, "_Sense"]:
        """What each label's description brings to mind, worked out once for a set of labels.

        It is taken from the passages nearest to the description (relevance feedback: Rocchio 1971 for the vector,
        Lavrenko and Croft 2001 for the words), each against the same of the other labels.
        """
        if labels not in self._senses:
            raw = self.centred(self._encoder.encode([described(*label) for label in labels]))
            count = min(_TYPICAL, len(self.parts))
            tops = [np.argsort(-row, kind="stable")[:count] for row in _whole(_apart(raw)) @ self.whole.T]
            recalled = _apart(np.stack([self.vectors[top].mean(axis=0) for top in tops]))
            seen = [Counter(word for at in top for word in self.words[at]) for top in tops]
            self._senses[labels] = {
                label: _Sense(
                    vector=_unit(own + _OWN * plain + _RECALLED * more),
                    words=self._telling(seen, at, count),
                    terms=self._terms(labels, label),
                )
                for at, ((label, _), own, plain, more) in enumerate(
                    zip(labels, _apart(raw), raw, recalled, strict=True)
                )
            }
        return self._senses[labels]

    def _telling(self, seen: list[Counter[str]], at: int, count: int) -> dict[str, float]:
        """How much more often each word stands in a label's passages than in the others' and in all, in the middle."""
        total = sum(seen, Counter[str]())
        rest = max(1, len(seen) - 1) * count
        ratios = {}
        for word, times in total.items():
            if times > 1:
                own = (seen[at][word] + 1) / (count + 2)
                others = (times - seen[at][word] + 1) / (rest + 2)
                everywhere = (self.times[word] + 1) / (len(self.parts) + 2)
                ratios[word] = own / others**_OTHERS / everywhere ** (1 - _OTHERS)
        return ratios

    def _terms(self, labels: tuple[tuple[str, str], ...], wanted: str) -> tuple[Sentence, ...]:
        others = {bare(word) for label in labels if label[0] != wanted for word in tokenise(described(*label))}
        runs: list[list[str]] = [[]]
        names = {bare(token) for token in tokenise(described(wanted, ""))}
        for token in tokenise(described(wanted, dict(labels)[wanted])):
            word = bare(token)
            # Short words are grammar, unless they are the label's name: "age limit", "ATM".
            telling = word[:1].isalnum() and len(word) >= (_SHORT_NAME if word in names else _SHORT_WORD)
            if telling and word not in self.common and word not in others:
                runs[-1].append(f" {word}")
            elif runs[-1]:
                runs.append([])
        return tuple(dict.fromkeys(tuple(run) for run in runs if run))

    def centred(self, raw: Vector) -> Vector:
        """Unit vectors after the mean of all that was read is taken off."""
        return _unit(raw - self._mean)


def _shown(request: Request) -> Iterable[str]:
    yield from request.good
    yield from request.bad
    yield from request.source
    if request.attribute is not None:
        yield request.attribute
    if request.must:
        yield "; ".join(request.must)


def _target(request: Request, vectors: dict[str, Vector], sense: dict[str, _Sense]) -> Vector:
    """Where in the encoder's space the texts are to lie."""
    target = np.zeros_like(next(iter(sense.values())).vector)
    weight = 1.0
    if request.source:
        target += _unit(_mean(vectors[text] for text in request.source))
        weight = _DESCRIPTION
    if request.good:
        good = _mean(vectors[text] for text in request.good)
        beyond = good - _mean(vectors[text] for text in request.bad) if request.bad else 0.0
        target += _unit(good + _CONTRAST * beyond)
        weight = _DESCRIPTION
    if request.must:
        target += vectors["; ".join(request.must)]
    if request.attribute is not None:
        target += _DESCRIPTION * vectors[request.attribute]
    if request.label is not None:
        target += weight * sense[request.label].vector
    return _unit(target)


def described(label: str, description: str) -> str:
    """A label in words."""
    return f"{label.replace('_', ' ')}: {description}"


def _apart(vectors: Vector) -> Vector:
    """Each of some vectors with the mean of the others taken off in part; (labels, dimensions) float32, unit norm."""
    rest = (vectors.sum(axis=0) - vectors) / max(1, len(vectors) - 1)
    return _unit(vectors - np.float32(_AGAINST_OTHERS) * rest)


def _mean(vectors: Iterable[Vector]) -> Vector:
    mean: Vector = np.stack(list(vectors)).mean(axis=0)
    return mean


def _unit(vectors: Vector) -> Vector:
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit: Vector = (vectors / np.maximum(norms, np.float32(1e-6))).astype(np.float32)
    return unit


def _whole(vectors: Vector) -> Vector:
    """Unit vectors as whole numbers, so that a cosine has the same bits whichever requests share a batch."""
    whole: Vector = np.rint(vectors * np.float32(_NORM))
    return whole
