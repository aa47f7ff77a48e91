"""A token classifier of spans, trained on one set of texts and tested on another.

Each word or symbol in a text is tagged as the beginning of a span of some type, inside such a span, or outside all
spans (Ramshaw and Marcus 1995). Logistic regression computes the probability of each tag from the surrounding words.
The text gets the most probable sequence in which an inside tag only follows a beginning or inside tag of the same type
(Viterbi 1967). A conditional random field would also learn such sequences, but scikit-learn has none, and one figure is
not worth a further dependency.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from common.errors import DataError
from server.metrics.accuracy import fit_in_one_thread
from server.spans import Marked, Span, Spans, split_tokens

DEFINITION = (
    "Logistic regression (L2, C = 10) on each word with its neighbours, its shape and its first and last letters, and "
    "the likeliest sequence of beginnings and insides. A span is right if its type and both of its borders are."
)
"""Text that defines the figures in reports."""

_OUTSIDE = "O"
_REACH = 2  # words on either side that a word is judged by


def train_and_tag(train: Sequence[Marked], texts: Sequence[str]) -> list[Spans]:
    """Train a token classifier on texts with spans, and return the spans that it finds in each of the other texts.

    Raises:
        DataError: No training text has a span.
    """
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    tags = [tag for text in train for tag in _tags(text)]
    if len(set(tags)) < 2:
        raise DataError("spans", expected="some in the texts from which the token classifier learns", got="none")
    vocabulary = CountVectorizer(analyzer=list)
    counts = vocabulary.fit_transform(_rows([text.text for text in train]))
    model = fit_in_one_thread(LogisticRegression(C=10.0, max_iter=200, tol=1e-3), counts, tags)
    chances = model.predict_log_proba(vocabulary.transform(_rows(texts)))
    tokens = [split_tokens(text) for text in texts]
    of_texts = np.split(chances, np.cumsum([len(of_text) for of_text in tokens])[:-1])
    names = tuple(model.classes_.tolist())
    return [_spans(words, likeliest_tags(names, rows)) for words, rows in zip(tokens, of_texts, strict=True)]


def likeliest_tags(names: tuple[str, ...], chances: NDArray[np.float64]) -> list[str]:
    """Return the most probable valid sequence of tags, given the log-probabilities of these tags, (tokens, tags)."""
    if not len(chances):
        return []
    begins, follows = _valid_steps(names)
    scores = np.where(begins, chances[0], -np.inf)
    steps = []
    for row in chances[1:]:
        paths = np.where(follows, scores[:, None], -np.inf)
        steps.append(paths.argmax(axis=0))
        scores = paths.max(axis=0) + row
    path = [int(scores.argmax())]
    for step in reversed(steps):
        path.append(int(step[path[-1]]))
    return [names[at] for at in reversed(path)]


def matches(tagged: Sequence[Spans], right: Sequence[Spans]) -> NDArray[np.int64]:
    """Return the numbers of correct spans, of all `tagged` spans, and of true spans in each text, (texts, 3)."""
    pairs = [(set(found), set(true)) for found, true in zip(tagged, right, strict=True)]
    counts = [(len(found & true), len(found), len(true)) for found, true in pairs]
    return np.array(counts, dtype=np.int64).reshape(-1, 3)


def span_scores(counts: NDArray[np.int64]) -> Mapping[str, float]:
    """Return precision, recall and F1 over all spans of the texts; a figure is NaN if it is 0 divided by 0."""
    hits, tagged, right = map(int, counts.sum(axis=0))
    return {
        "f1": 2 * hits / (tagged + right) if tagged + right else np.nan,
        "precision": hits / tagged if tagged else np.nan,
        "recall": hits / right if right else np.nan,
    }


def _tags(text: Marked) -> Iterator[str]:
    """Yield the tag of each word; a word that is only partly in a span counts as outside."""
    waiting = list(reversed(text.spans))
    for _, start, end in split_tokens(text.text):
        while waiting and waiting[-1].end <= start:
            waiting.pop()
        span = waiting[-1] if waiting and waiting[-1].start <= start and end <= waiting[-1].end else None
        yield _OUTSIDE if span is None else f"{'B' if start == span.start else 'I'}-{span.type}"


def _spans(tokens: Sequence[tuple[str, int, int]], tags: Sequence[str]) -> Spans:
    """Return the spans for a valid sequence of tags."""
    spans: list[Span] = []
    for (_, start, end), tag in zip(tokens, tags, strict=True):
        place, _, kind = tag.partition("-")
        if place == "B":
            spans.append(Span(start=start, end=end, type=kind))
        elif place == "I":
            spans[-1] = Span(start=spans[-1].start, end=end, type=kind)
    return tuple(spans)


@cache
def _valid_steps(names: tuple[str, ...]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return whether each tag may begin a text, (tags,), and which tag may follow which, (before, after)."""
    begins = np.array([not name.startswith("I-") for name in names])
    same = np.array([[before[1:] == name[1:] for name in names] for before in names])
    return begins, begins | same


def _rows(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the features of each word of all texts."""
    for text in texts:
        yield from _features([word for word, *_ in split_tokens(text)])


def _features(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield the features of each word of a text."""
    low = [word.lower() for word in words]
    shapes = ["".join("0" if c.isdigit() else "A" if c.isupper() else "a" for c in word)[:4] for word in words]
    padded = ["<"] * _REACH + low + [">"] * _REACH
    for at, word in enumerate(low):
        around = padded[at : at + 2 * _REACH + 1]
        yield [
            *(f"{place}:{other}" for place, other in enumerate(around)),
            f"left:{around[_REACH - 1]} {word}",
            f"right:{word} {around[_REACH + 1]}",
            f"first:{word[:3]}",
            f"last:{word[-3:]}",
            f"shape:{shapes[at]}",
            f"shapes:{' '.join(shapes[max(0, at - 1) : at + 2])}",
        ]
