"""The forward pass, in numpy, of a BERT that averages the vectors of a text's tokens, such as all-MiniLM-L6-v2.

The network is that of Devlin et al. (2019): embeddings, then layers of attention and of two dense maps with a GELU
between them, each with a residual connection and a normalisation. So a party can encode its records without torch;
simulations/laboratory/benchmarks/README.md has the comparison. The weights have the same names as in the checkpoints.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from common.models import windows
from common.models.batches import batches_of_equal_length, encodable
from common.models.bert_folder import POSITIONS, TYPES, WORDS, BertFolder
from common.system.progress import progress

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Vectors = NDArray[np.float32]

_BLOCK = 4096
"""Number of texts whose tokens are in memory at once."""
_TOKENS = 1024
"""Number of tokens per batch; between 512 and 2,048, differences in time are within measurement noise."""

_COEFFICIENTS = (
    7.97884268e-01,
    3.63341492e-02,
    -3.30267310e-05,
    -5.52733772e-05,
    3.97406939e-06,
    -1.33783111e-07,
    1.81392524e-09,
)
"""Coefficients of P in `gelu`, lowest power first. They minimise the largest error of x Φ(x) on [-6, 6], 7e-8."""


class Bert:
    """A BERT that averages the vectors of a text's tokens: a `common.models.windows.WindowedModel`.

    Args:
        folder: The encoder's files.
        prompt: Prefix of every text.

    Raises:
        ConfigError: A file is damaged.
    """

    def __init__(self, folder: BertFolder, prompt: str) -> None:
        self._folder, self._prompt, self._warned = folder, prompt, False
        with progress("loading the encoder"):
            self._tokenizer = folder.tokenizer()
            self._weights = dict(folder.weights())

    @property
    def dimensions(self) -> int:
        """Dimension of the vectors."""
        return self._folder.width

    @cached_property
    def digest(self) -> str:
        """Hex SHA-256 of weights, vocabulary, settings and prompt; see `BertFolder.digest`."""
        return self._folder.digest(self._prompt, self._weights.items())

    def batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], Vectors]]:
        """Yield batches of texts of equal length, as `EmbeddingModel.batches` does."""
        for start in range(0, len(texts), _BLOCK):
            block = [encodable(f"{self._prompt}{text}") for text in texts[start : start + _BLOCK]]
            encodings = self._tokenizer.encode_batch(block)
            if not self._warned and any(encoding.overflowing for encoding in encodings):
                self._warned = True
                windows.warn_of_truncation(self._folder.longest)
            tokens = [encoding.ids for encoding in encodings]
            for batch in batches_of_equal_length([len(ids) for ids in tokens], _TOKENS):
                yield [start + place for place in batch], self._mean(np.array([tokens[place] for place in batch]))

    def windows(self, text: str) -> list[tuple[str, int]]:
        """Split a text, as `WindowedModel.windows` does."""
        text = encodable(text)
        whole = self._untruncated.encode(text, add_special_tokens=False)
        around = len(self._untruncated.encode(self._prompt).ids)  # with both special tokens
        return windows.split(text, whole.offsets, whole.word_ids, max(1, self._folder.longest - around))

    @cached_property
    def _untruncated(self) -> "Tokenizer":
        tokenizer = self._folder.tokenizer()
        tokenizer.no_truncation()
        return tokenizer

    def _mean(self, tokens: NDArray[np.int64]) -> Vectors:
        """Average the last layer over each text's tokens: (texts, length) token indices yield (texts, width) means."""
        texts, length = tokens.shape
        x = self._weights[WORDS][tokens]
        x += self._weights[POSITIONS][:length] + self._weights[TYPES][0]
        x = self._normalised("embeddings", x.reshape(texts * length, -1))
        for layer in (f"encoder.layer.{number}" for number in range(self._folder.layers)):
            mixed = self._attention(f"{layer}.attention.self", x, length)
            x = self._normalised(f"{layer}.attention.output", self._dense(f"{layer}.attention.output.dense", mixed) + x)
            inner = gelu(self._dense(f"{layer}.intermediate.dense", x))
            x = self._normalised(f"{layer}.output", self._dense(f"{layer}.output.dense", inner) + x)
        means: Vectors = x.reshape(texts, length, -1).mean(axis=1)
        return means

    def _attention(self, name: str, x: Vectors, length: int) -> Vectors:
        """Apply multi-head attention within each text; x is (texts * length, width)."""
        parts = (self._dense(f"{name}.{part}", x) for part in ("query", "key", "value"))
        heads = (part.reshape(-1, length, self._folder.heads, part.shape[1] // self._folder.heads) for part in parts)
        query, key, value = (part.swapaxes(1, 2) for part in heads)
        weights: Vectors = query @ key.swapaxes(2, 3)
        weights *= np.float32(query.shape[-1] ** -0.5)
        weights -= weights.max(axis=-1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= weights.sum(axis=-1, keepdims=True)
        mixed: Vectors = (weights @ value).swapaxes(1, 2).reshape(x.shape)
        return mixed

    def _dense(self, name: str, x: Vectors) -> Vectors:
        y: Vectors = x @ self._weights[f"{name}.weight"].T
        y += self._weights[f"{name}.bias"]
        return y

    def _normalised(self, name: str, x: Vectors) -> Vectors:
        """Normalise each token's vector to mean 0 and variance 1, then scale and shift it; x is changed in place."""
        x -= x.mean(axis=1, keepdims=True)
        variance = np.einsum("td,td->t", x, x) / np.float32(x.shape[1])
        x /= np.sqrt(variance + np.float32(self._folder.epsilon))[:, None]
        x *= self._weights[f"{name}.LayerNorm.weight"]
        x += self._weights[f"{name}.LayerNorm.bias"]
        return x


def gelu(x: Vectors) -> Vectors:
    """Compute the activation x Φ(x), with Φ the normal distribution function, to within 7e-7; x is overwritten.

    Φ(x) is computed as (1 + tanh(x P(x²))) / 2. In numpy this takes a sixth of the time of scipy's erf, which would
    account for a third of an encoder's running time.
    """
    square = x * x
    power = square * np.float32(_COEFFICIENTS[-1])
    with np.errstate(over="ignore"):  # beyond 1,000 it may be infinite, and tanh is 1
        for coefficient in _COEFFICIENTS[-2:0:-1]:
            power += np.float32(coefficient)
            power *= square
        power += np.float32(_COEFFICIENTS[0])
        power *= x
    np.tanh(power, out=power)
    power += 1
    power *= np.float32(0.5)
    x *= power
    return x
