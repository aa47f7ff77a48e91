"""Sequences of keyphrases drawn from a private density, as DP-KPS does with noised answers (sections 2 and A.2).

    public vocabulary ── noised counts ──▶ private vocabulary V' ── embedded ──▶ points
    drawn frequencies ── noised sketch ──▶ densities of points ──▶ sequences

Nothing here accesses a record: frequencies come from the public experiment seed, and everything else is
post-processing. A sketch gives the density of any point as a sum over its rows,

    density(x) = 1/rows sum_i c_i cos(a_i) + s_i sin(a_i),    a_i = sqrt(2) w_i . x + b_i,

where c and s are the noised sums of the records' cosines and sines (paired features), or sqrt(2) times the noised sum
and 0 (single features). This density is the mean kernel times the number of records, which is private; sampling in
proportion to the density does not need that number.

A prefix of j phrases is represented by the concatenation of j vectors. A sketch with more blocks is evaluated at the
prefix padded with zeros (theorem A.1), that is, without the columns of the other blocks: with |x - y|^2 over all
blocks, the density of the padded prefix is the density of the prefix, except that each record's term is multiplied by
exp(-squared norm of its other blocks / h^2). This factor is the same for all records that fill their blocks, so
sampling in proportion is unchanged.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.errors import ConfigError
from common.labelled_files import named_by, read_texts
from common.queries.sketch import SketchSpec
from common.queries.terms import MOST_BYTES, MOST_WORDS, fits, words

_ROWS = 256
"""Number of sequences extended at once; their scores for 10,000 phrases take 20 MB."""

Floats = NDArray[np.float32]


def public_vocabulary(path: str, *, at_least: int) -> tuple[str, ...]:
    """Return the terms in a file, one per line, except terms that have no word or repeat the words of an earlier term.

    Raises:
        DataError: The file cannot be read, or is empty.
        ConfigError: No line contains a word, a term is too long for a query, or there are fewer terms than `at_least`.
    """
    first: dict[tuple[str, ...], str] = {}
    with named_by("method.vocabulary"):
        terms = read_texts(path)
    for term in terms:
        if spelled := tuple(words(term)):
            first.setdefault(spelled, term)
    if not first:
        raise ConfigError("method.vocabulary", expected="at least one term with a letter or digit", got="none")
    if long := [term for term in first.values() if not fits(term)]:
        expected = f"terms of at most {MOST_WORDS} words and {MOST_BYTES} bytes"
        raise ConfigError("method.vocabulary", expected=expected, got=long[0], do="Shorten it, or leave it out")
    if len(first) < at_least:
        raise ConfigError("method.kept_terms", expected=f"at most {len(first)}, the public vocabulary", got=at_least)
    return tuple(first.values())


def private_vocabulary(terms: Sequence[str], counts: NDArray[np.float64], kept: int) -> tuple[str, ...]:
    """Return V', the `kept` terms with the highest noised counts, in descending order."""
    return tuple(terms[i] for i in np.argsort(-counts, kind="stable")[:kept])


def draw_frequencies(
    spec: SketchSpec, dim: int, bandwidth: float, generator: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draw the frequencies and phases of a sketch, in the form that `common.queries.sketch.Sketch` expects.

    Each of j blocks has an effective squared norm of 1/j, so that one bandwidth serves sequences of any length (section
    A.2, bandwidth selection). The vectors have norm 1, so the frequencies include the factor 1/sqrt(j).
    """
    rows = spec.features // 2 if spec.paired else spec.features
    blocks = max(1, spec.prefix)
    normal = generator.standard_normal((rows, blocks * dim)) / (bandwidth * math.sqrt(blocks))
    phases = generator.uniform(0, 2 * math.pi, 0 if spec.paired else rows)
    return normal.astype(np.float32), phases.astype(np.float32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Density:
    """Densities from a noised sketch.

    Attributes:
        frequencies: (rows, blocks * dim) float32.
        phases: (rows,) float32, zeros for paired features.
        cosines: (labels, rows) float32, c in the module's docstring.
        sines: (labels, rows) float32, s in the module's docstring.
    """

    frequencies: Floats
    phases: Floats
    cosines: Floats
    sines: Floats

    @classmethod
    def of(cls, spec: SketchSpec, frequencies: Floats, phases: Floats, answer: NDArray[np.float64]) -> "Density":
        """Return the densities that a noised answer of shape (labels * features,) defines."""
        sums = answer.reshape(spec.labels, spec.features).astype(np.float32)
        if spec.paired:
            cosines, sines = np.split(sums, 2, axis=1)
            phases = np.zeros(len(frequencies), dtype=np.float32)
        else:
            cosines, sines = math.sqrt(2) * sums, np.zeros_like(sums)
        return cls(
            frequencies=frequencies, phases=phases, cosines=cosines.astype(np.float32), sines=sines.astype(np.float32)
        )

    def at(self, points: Floats) -> Floats:
        """Return the (labels, n) densities at (n, columns) points; missing columns count as zeros."""
        angles = self.phases + self.angles(points)
        sums: Floats = self.cosines @ np.cos(angles).T + self.sines @ np.sin(angles).T
        return sums / np.float32(len(self.phases))

    def of_extensions(self, label: int, prefixes: Floats, waves: Floats) -> Floats:
        """Return the (m, n) densities under a label of m prefixes, each extended by each of n phrases.

        cos(a + p) and sin(a + p) are sums of products of functions of a, the angle of the prefix, and p, the angle of
        the phrase, so one matrix product gives all extensions.

        Args:
            label: Index of the label.
            prefixes: (m, j * dim), where j may be 0.
            waves: (n, 2 * rows), from `waves` for the phrases at position j.
        """
        before = self.phases + self.angles(prefixes)
        cos, sin = np.cos(before), np.sin(before)
        c, s = self.cosines[label], self.sines[label]
        both = np.concatenate([c * cos + s * sin, s * cos - c * sin], axis=1)
        scores: Floats = both @ waves.T
        scores /= len(self.phases)
        return scores

    def waves(self, vectors: Floats, place: int) -> Floats:
        """Return the (n, 2 * rows) cosines and sines of the angles that (n, dim) phrases add at position `place`."""
        dim = vectors.shape[1]
        angles = math.sqrt(2) * (vectors @ self.frequencies[:, place * dim : (place + 1) * dim].T)
        return np.concatenate([np.cos(angles), np.sin(angles)], axis=1)

    def angles(self, points: Floats) -> Floats:
        """Return the (n, rows) angles of (n, columns) points, without phases."""
        columns = points.shape[1]
        angles: Floats = np.float32(math.sqrt(2)) * (points @ self.frequencies[:, :columns].T)
        return angles


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sequences:
    """Sequences of phrases for one label.

    Attributes:
        phrases: (sequences, length) int64, indices in V'.
        uniform: Number of phrases drawn uniformly because no noised density was positive.
    """

    phrases: NDArray[np.int64]
    uniform: int


def draw_independently(densities: Floats, count: int, length: int, generator: np.random.Generator) -> Sequences:
    """Draw all phrases independently, in proportion to max(density, 0); `densities` is (n,)."""
    positions, uniform = _draws(np.broadcast_to(densities, (1, len(densities))), count * length, generator)
    return Sequences(phrases=positions.reshape(count, length), uniform=uniform)


def iterative(
    ensemble: Sequence[Density], label: int, vectors: Floats, counts: int, generator: np.random.Generator
) -> Sequences:
    """Draw each phrase in proportion to the density of the sequence that it extends, where this density is positive.

    Args:
        ensemble: Density for each position in a sequence.
        label: Index of the label.
        vectors: (n, dim), vectors of the phrases.
        counts: Number of sequences to draw.
        generator: Source of randomness.
    """
    phrases = np.zeros((counts, len(ensemble)), dtype=np.int64)
    uniform = 0
    for place, density in enumerate(ensemble):
        waves = density.waves(vectors, place)
        for start in range(0, counts, _ROWS):
            rows = slice(start, start + _ROWS)
            before = phrases[rows, :place]
            prefixes = vectors[before].reshape(len(before), -1)
            scores = density.of_extensions(label, prefixes, waves)
            positions, fallbacks = _draws(scores, 1, generator)
            phrases[rows, place] = positions[:, 0]
            uniform += fallbacks
    return Sequences(phrases=phrases, uniform=uniform)


def ensemble_prefixes(length: int, ensemble: str) -> tuple[int, ...]:
    """Return the number of blocks of each sketch in an ensemble for sequences of `length` phrases (section A.2).

    "linear": 1, 2, ..., K. "logarithmic": 2, 4, ... up to the smallest power of two that is at least K, which gives
    ceil(log2 K) sketches, so that no prefix is padded with more blocks than it has.
    """
    if ensemble == "linear":
        return tuple(range(1, length + 1))
    return tuple(2**i for i in range(1, (length - 1).bit_length() + 1)) or (1,)


def _draws(weights: Floats, count: int, generator: np.random.Generator) -> tuple[NDArray[np.int64], int]:
    """Draw (rows, count) column indices in proportion to each row's positive weights, or uniformly if a row has none.

    Returns:
        The indices, and how many of them were drawn uniformly.
    """
    sums = np.cumsum(np.maximum(weights, 0), axis=1, dtype=np.float64)
    empty = sums[:, -1] <= 0
    sums[empty] = np.arange(1, weights.shape[1] + 1)
    positions = np.empty((len(sums), count), dtype=np.int64)
    for row, uniform, output in zip(sums, generator.random((len(sums), count)), positions, strict=True):
        # Rounding may bring u * total up to the total although u < 1: cap at the last position with a weight.
        np.minimum(np.searchsorted(row, uniform * row[-1], side="right"), np.searchsorted(row, row[-1]), out=output)
    return positions, int(empty.sum()) * count
