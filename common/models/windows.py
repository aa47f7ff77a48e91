"""Windows of long texts: an encoder reads only the first n tokens of a text, unless it is set to average windows.

With `windows="average"` a text is split into consecutive windows of at most n tokens, between words. Each window is
encoded separately, including the prompt, and its vector is scaled to norm 1. The text's vector is the average of these
vectors, weighted by the windows' numbers of tokens and scaled to norm 1 again. A text that fits into one window has the
same vector as without windows. The choice is part of the encoder's identity: its digest differs from that of the same
model without windows, so that hospitals and coordinator agree on it.
"""

import hashlib
import logging
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from common.errors import ConfigError

log = logging.getLogger("caucus.models")

FIRST, AVERAGE = "first", "average"
_BLOCK = 256
"""Number of texts whose windows are in memory at once."""


class EmbeddingModel(Protocol):
    """A model with which a `common.models.encoder.Encoder` computes vectors."""

    @property
    def dimensions(self) -> int:
        """Dimension of the vectors."""

    @property
    def digest(self) -> str:
        """Hex SHA-256 of everything that affects a vector, as `Encoder.digest` defines it."""

    def batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        """Yield, for each batch, the indices of its texts and their vectors.

        The vectors are a (texts, dimensions) array and may have any norm.
        """


class WindowedModel(EmbeddingModel, Protocol):
    """A model that reads a limited number of tokens of a text, and can split the text into windows."""

    def windows(self, text: str) -> list[tuple[str, int]]:
        """Split a text into parts that the model can read whole, and return each part with its number of tokens."""


class Averaged:
    """The `EmbeddingModel` that averages the windows of a text.

    Args:
        model: The model that encodes each window.
    """

    def __init__(self, model: WindowedModel) -> None:
        self._model = model

    @property
    def dimensions(self) -> int:
        """Dimension of the vectors."""
        return self._model.dimensions

    @property
    def digest(self) -> str:
        """Hex SHA-256 of the model's digest and of the choice of windows."""
        return hashlib.sha256(f"caucus/windows={AVERAGE}/{self._model.digest}".encode()).hexdigest()

    def batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        """Yield, for each batch, the indices of its texts and the averages of their windows, of any norm."""
        for start in range(0, len(texts), _BLOCK):
            block = texts[start : start + _BLOCK]
            parts = [(place, *part) for place, text in enumerate(block) for part in self._model.windows(text)]
            vectors = np.empty((len(parts), self.dimensions), np.float64)
            for places, raw in self._model.batches([part for _, part, _ in parts]):
                vectors[places] = raw / np.maximum(np.linalg.norm(raw, axis=1, keepdims=True), 1e-30)
            sums = np.zeros((len(block), self.dimensions))
            weights = np.array([tokens for _, _, tokens in parts], np.float64)[:, None]
            np.add.at(sums, [place for place, _, _ in parts], weights * vectors)
            yield list(range(start, start + len(block))), sums.astype(np.float32)


def warn_of_truncation(longest: int | None) -> None:
    """Warn that texts are truncated at so many tokens, without stating how many texts: their number is private."""
    log.warning(
        "some texts are longer than the %s tokens that the encoder reads: what stands behind these is not in their "
        "vectors; embedding.windows=average reads all of it, with `windows: average` at each hospital",
        longest,
    )


def no_windows(windows: str | None) -> None:
    """Raise ConfigError if windows are requested for an encoder that reads whole texts, however long."""
    if windows not in {None, FIRST}:
        raise ConfigError(
            "embedding.windows", expected="none: this encoder reads whole texts", got=windows, do="Leave it out"
        )


def split(
    text: str, offsets: Sequence[tuple[int, int]], words: Sequence[int | None], longest: int
) -> list[tuple[str, int]]:
    """Return the windows of a text, each with its number of tokens; special tokens are not counted.

    Args:
        text: The text.
        offsets: Beginning and end of each token in the text.
        words: For each token, the index of the word that contains it. A window begins at the beginning of a word,
            unless a single word fills the previous window.
        longest: n, the maximum number of tokens in a window.
    """
    starts = [0]
    while starts[-1] + longest < len(offsets):
        cut = starts[-1] + longest
        while cut > starts[-1] + 1 and words[cut] is not None and words[cut] == words[cut - 1]:
            cut -= 1
        starts.append(cut if cut > starts[-1] + 1 else starts[-1] + longest)
    if len(starts) == 1:
        return [(text, max(1, len(offsets)))]
    places = [0, *(offsets[start][0] for start in starts[1:]), len(text)]
    sizes = np.diff([*starts, len(offsets)]).tolist()
    return [(text[begin:end], size) for begin, end, size in zip(places, places[1:], sizes, strict=False)]
