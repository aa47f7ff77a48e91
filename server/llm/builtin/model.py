"""The built-in language model, which is small and needs no network, weights or key.

It has read public text and nothing else. For each request it finds the nearest passages among its texts. Nearness
depends on the label and its description relative to the other labels, on the good exemplars relative to the bad ones,
on source texts and on keyphrases. For a section, only texts under the section's heading are searched. Then the model
writes with a local n-gram model of those passages and the exemplars (`composer`). Its texts depend only on the fields
of the request; no task is built in. `Request.wording`, which is for chat models, has no effect here.
"""

import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from common.errors import ProviderError
from common.models.encoder import TextEncoder
from common.rng import experiment, stream
from common.validate import at_least, in_range, not_empty, positive
from server.domain import Example
from server.llm.base import Arrived, Reply, Request
from server.llm.builtin.composer import Passage, TextComposer
from server.llm.builtin.lexicon import Lexicon
from server.llm.builtin.library import NORM, Sense, TextLibrary, Vector, headings_of, unit, whole_numbers
from server.llm.builtin.ngram import sentences
from server.llm.marks import without_marks

_VERSION = 4  # of what is written for a request; raise it with every change, or caches keep the old texts
_BLOCK = 256  # number of requests whose similarities are in memory at once
_SHORTLIST = 256  # passages that one request looks at
_PASSAGES = 32  # of which it reads these again
_SHAPES = 16  # read in addition where no exemplar shows what a text looks like
_ALIKE = 0.2  # share of all that was read, most like one text drawn at random, from which these come
_CONTRAST = 1.0  # 1 puts the good exemplars midway between the bad ones and the target, as the contrastive prompt asks
_DESCRIPTION = 0.5  # weight of label and description relative to exemplars
_BEFORE = 0.25  # weight of the sections that a text has so far
_TELLING = 64  # passages nearest to a label whose phrases are its subtopics
_TOKENS_PER_WORD = 1.3
_WORDS_OF_A_PHRASE = 2
_WRITTEN = 0.87
"""Number of words written for each word of the imitated text. Of two drafts of a sentence, the one with fewer unknown
word sequences is kept, which is usually the shorter one. The ratio was 0.86 to 0.91 in six methods on demo notes; a
text with blanks to fill keeps its length."""


class BuiltinModel:
    """A retrieval-weighted n-gram model of public text.

    Args:
        name: Name in reports and candidates.
        public_texts: All texts that it may read.
        encoder: Encoder for the similarity of texts.
        public_examples: The same texts with their spans, from which it learns to mark its own texts, and with their
            headings: a section is written from those under its heading.
        share: Fraction of the public text that it has read; if below 1, it has read only texts on randomly drawn
            topics.
        focus: Preference for the nearest passages, as an inverse temperature of cosine similarities.
        noise: Fraction of words that depend on the preceding word only, in [0, 1].
        experiment_seed: Determines the texts that it has read and, with a request's own seed, its random draws.

    Raises:
        ProviderError: There are no public texts to read.
    """

    remote = False
    declines = frozenset[str]()

    def __init__(
        self,
        *,
        name: str,
        public_texts: Sequence[str],
        encoder: TextEncoder,
        public_examples: Sequence[Example] = (),
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
        self._texts = [text for text in dict.fromkeys(public_texts) if text.strip()]
        if not self._texts:
            raise ProviderError(
                f"the built-in model {name} has nothing to read",
                expected="public texts of the kind that is to be written",
                got="none",
                do="give it a file of public texts, or choose a model that brings its own knowledge",
            )
        self._usual_words = sum(len(text.split()) for text in self._texts) / len(self._texts)
        read = hashlib.sha256("\x1f".join(self._texts).encode()).hexdigest()[:16]
        self.name = name
        settings = f"{name}/{share}/{focus}/{noise}/{experiment_seed}"
        self.identity = f"embedded/{settings}/{read}/{getattr(encoder, 'digest', '')}/{_VERSION}"
        self._lexicon = Lexicon(public_examples)
        if self._lexicon.digest:
            self.identity += f"/spans={self._lexicon.digest}"
        self._headings = headings_of(self._texts, public_examples)
        if self._headings:
            content = repr(list(map(sorted, self._headings)))
            self.identity += f"/headings={hashlib.sha256(content.encode()).hexdigest()[:16]}"
        self._encoder = encoder
        self._share, self._focus, self._noise, self._seed = share, focus, noise, experiment_seed

    def check(self) -> None:
        """Do nothing, since the model runs on this machine."""

    def generate(self, requests: Sequence[Request], *, arrived: Arrived | None = None) -> list[Reply]:
        """Generate the replies (`server.llm.base.Provider`); each depends only on this model and its request."""
        if not requests:
            return []
        asked, requests = requests, [without_marks(request) for request in requests]
        vectors = self._vectors(requests)
        replies: list[Reply] = []
        for start in range(0, len(requests), _BLOCK):
            block = requests[start : start + _BLOCK]
            targets = np.stack([_target(request, vectors, self._library.sense(request.labels)) for request in block])
            nearness = whole_numbers(targets) @ self._library.whole.T / np.float32(NORM**2)
            for request, near in zip(block, nearness, strict=True):
                texts = self._listed(request, near) if request.phrases else self._write(request, near, vectors)
                written = sum(len(text.split()) for text in texts)
                read = self.estimate(request)[0]
                if asked[len(replies)].marks:
                    texts = tuple(map(self._lexicon.mark, texts))
                reply = Reply(texts=texts, input_tokens=read, output_tokens=round(written * _TOKENS_PER_WORD))
                replies.append(reply)
                if arrived is not None:
                    arrived(len(replies) - 1, reply)
        return replies

    def estimate(self, request: Request) -> tuple[int, int]:
        """Return the expected numbers of input and output tokens, for the forecast; this model's tokens are free."""
        read = sum(len(text.split()) for text in (*request.shown, *request.must, request.description))
        around = len(request.must) * self._words_around if not request.source else 0.0  # a sentence for each keyphrase
        if around:
            words = min(request.words or around, around)
        elif request.phrases:
            words = request.words or _WORDS_OF_A_PHRASE
        else:
            words = (request.words or self._usual_words) * (1.0 if request.blanks else _WRITTEN)
        return round(read * _TOKENS_PER_WORD), round(request.n * words * _TOKENS_PER_WORD)

    @cached_property
    def _words_around(self) -> float:
        """Expected length, in words, of the sentence that contains a word drawn at random from the texts."""
        parts = (part for text in self._texts for part in sentences(text))
        lengths = np.array([len("".join(part).split()) for part in parts])
        return float((lengths**2).sum() / lengths.sum())

    @cached_property
    def _library(self) -> TextLibrary:
        """The texts that the model has read, loaded at the first request whose reply is not in a cache."""
        part = (self._share, self._seed, self.name) if self._share < 1 else (1.0, 0, "")
        return _library(tuple(self._texts), self._encoder, *part, headings=self._headings)

    def _vectors(self, requests: Sequence[Request]) -> dict[str, Vector]:
        """Return the vectors of all texts that the requests show, each text encoded once."""
        shown = dict.fromkeys(text for request in requests for text in _input_texts(request))
        raw = self._library.centred(self._encoder.encode(list(shown)))
        return dict(zip(shown, raw, strict=True))

    def _write(self, request: Request, near: Vector, vectors: dict[str, Vector]) -> tuple[str, ...]:
        """Return the texts for one request, written from passages drawn near the target."""
        library = self._library
        senses = [library.sense(request.labels)[label] for label, _ in request.requested]
        rng = experiment(self._seed, "embedded model", self.name, request.seed)
        passages = senses[0].passages if len(senses) == 1 else np.arange(len(near))
        passages_at = self._drawn(near, passages, _PASSAGES, rng)
        shown = request.good + request.source  # of which a text of the kind takes its shape
        anchors = [Passage(parts=sentences(text), vector=vectors[text], near=1.0) for text in shown]
        shapeless = not shown or request.abstract
        if shapeless:
            # Nothing shows what a text looks like: a text that was read does, and those like it that are near.
            shape = library.vectors[passages[rng.integers(len(passages))]]
            like = (whole_numbers(shape) @ library.whole.T)[passages]
            alike = like >= np.quantile(like, 1 - _ALIKE, method="higher")
            near_and_alike = near.copy()
            near_and_alike[passages[~alike]] = -2
            passages_at = np.concatenate([passages_at, self._drawn(near_and_alike, passages, _SHAPES, rng)])
        return TextComposer(
            request=request,
            passages=[
                Passage(parts=library.parts[at], vector=library.vectors[at], near=float(near[at])) for at in passages_at
            ],
            shapes=min(_SHAPES, len(passages)) if shapeless else 0,
            senses=senses,
            anchors=anchors,
            library=library,
            # Many sections are formulas, such as "None known", and then a public one is what is to be written.
            copying=len(passages) < len(near),
            focus=self._focus,
            noise=self._noise,
            seed=stream(self._seed, "embedded model", self.name, request.seed, "words"),
        ).texts()

    def _listed(self, request: Request, near: Vector) -> tuple[str, ...]:
        """Return phrases that distinguish the passages near the target from those near the other labels."""
        library = self._library
        senses = [sense for label, sense in library.sense(request.labels).items() if request.label not in (None, label)]
        anything = request.label is None and request.attribute is None
        count = len(near) if anything else min(_TELLING, len(near))
        tops = [np.argsort(-row, kind="stable")[:count] for row in (near, *(library.whole @ s.vector for s in senses))]
        return library.phrases.characteristic(
            tops[0],
            np.setdiff1d(np.concatenate([tops[0][:0], *tops[1:]]), tops[0]),
            count=request.n,
            temperature=request.temperature,
            rng=experiment(self._seed, "embedded model", self.name, request.seed),
        )

    def _drawn(
        self, near: Vector, passages: NDArray[np.intp], count: int, rng: np.random.Generator
    ) -> NDArray[np.intp]:
        """Draw up to `count` of these passages, in proportion to exp(focus · nearness), by adding Gumbel noise.

        `near` is the nearness of each text to the target, (texts,); `passages` are indices of texts, (n,).
        """
        near = near[passages]
        short = np.argpartition(-near, min(_SHORTLIST, len(near)) - 1)[:_SHORTLIST]
        short = short[np.lexsort((short, -near[short]))]
        scores = self._focus * near[short] + rng.gumbel(size=len(short))
        return passages[short[np.argsort(-scores)[:count]]]


_library = lru_cache(maxsize=2)(TextLibrary)
"""The texts that a model has read; models that read all texts share one."""


def _input_texts(request: Request) -> Iterable[str]:
    yield from request.good
    yield from request.bad
    yield from request.source
    if request.attribute is not None:
        yield request.attribute
    if request.must:
        yield "; ".join(request.must)
    if request.before:
        yield request.before


def _target(request: Request, vectors: dict[str, Vector], sense: dict[str, Sense]) -> Vector:
    """Return the point in the encoder's space near which the texts should lie."""
    target = np.zeros_like(next(iter(sense.values())).vector)
    weight = 1.0
    if request.source:
        target += unit(np.mean([vectors[text] for text in request.source], axis=0))
        weight = _DESCRIPTION
    if request.good:
        good = np.mean([vectors[text] for text in request.good], axis=0)
        beyond = good - np.mean([vectors[text] for text in request.bad], axis=0) if request.bad else 0.0
        target += unit(good + _CONTRAST * beyond)
        weight = _DESCRIPTION
    if request.must:
        target += vectors["; ".join(request.must)]
    if request.attribute is not None:
        target += _DESCRIPTION * vectors[request.attribute]
    if request.before:
        target += _BEFORE * vectors[request.before]
    for label, _ in request.requested:
        target += weight / len(request.requested) * sense[label].vector
    return unit(target)
