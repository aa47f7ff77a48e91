"""Time and memory of DP-KPS, and how they grow: extraction, densities, iterative sequences.

    OMP_NUM_THREADS=2 python -m simulations.laboratory.benchmarks.keyphrases [--scale 1]

The vocabulary has 400,000 terms of one to four made-up words. A document has 100 random words and 40 of the terms. The
table shows the wall-clock seconds of a single measurement on the cores that numpy may use, and the peak memory of the
process. `--scale` reduces all sizes, for a test. The first line of each section states a bound on its time; the lines
below it change one size at a time.
"""

import argparse
import resource
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from common.queries.sketch import SketchSpec
from common.queries.terms import Extractor
from server.operators import keyphrases
from server.operators.keyphrases import Density
from simulations.laboratory.benchmarks.ratios import Ratio, benchmark
from simulations.laboratory.output import show

Result = TypeVar("Result")

_DIM, _SYLLABLES = 256, 60_000


def main(arguments: Sequence[str] | None = None) -> list[Ratio]:
    """Print the table; return the factors by which the times grow when one size is doubled."""
    parser = argparse.ArgumentParser(prog="bench_keyphrases", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--scale", type=float, default=1.0, help="of all sizes, for a test")
    scale: float = parser.parse_args(arguments).scale

    def sized(number: int) -> int:
        return max(2, round(number * scale))

    show(f"{'what':24}{'terms':>9}{'features':>10}{'sequences':>11}{'phrases':>9}{'documents':>11}{'seconds':>10}\n")
    for terms, documents, bound in ((400_000, 10_000, 60), (400_000, 1_000, 0), (40_000, 10_000, 0)):
        _extraction(sized(terms), sized(documents), bound)
    densities = []
    for terms, features, bound in ((10_000, 1_000, 2), (10_000, 2_000, 0), (20_000, 1_000, 0)):
        densities.append(_densities(sized(terms), sized(features), bound))
    sequences = []
    for terms, features, phrases, bound in (
        (10_000, 1_000, 10, 60),
        (5_000, 1_000, 10, 0),
        (10_000, 500, 10, 0),
        (10_000, 1_000, 5, 0),
    ):
        sequences.append(_sequences(sized(terms), sized(features), sized(1_000), phrases, bound))
    show(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB (bound: 4)\n")
    grown = [
        ("densities, features", densities[1] / densities[0]),
        ("densities, terms", densities[2] / densities[0]),
        ("iterative sequences, terms", sequences[0] / sequences[1]),
        ("iterative sequences, features", sequences[0] / sequences[2]),
        ("iterative sequences, phrases", sequences[0] / sequences[3]),
    ]
    return [Ratio(name=name, to="half as many", value=value) for name, value in grown]


def _extraction(terms: int, documents: int, bound: float) -> None:
    """Print lines with the time to extract the first 10 terms and all terms, including the construction of the trie."""
    vocabulary, texts = _texts(terms, documents)
    extractor, seconds = _timed(lambda: Extractor(vocabulary))
    for first, name in ((10, "first 10 terms"), (10**6, "all terms")):
        _, reading = _timed(partial(_extract, extractor, texts, first))
        _line(name, (terms, None, None, None, documents), seconds + reading, bound)


def _extract(extractor: Extractor, texts: Sequence[str], first: int) -> list[tuple[int, ...]]:
    return [extractor.first(text, first) for text in texts]


def _densities(terms: int, features: int, bound: float) -> float:
    """Return the seconds to compute the densities of all terms from a sketch with one label; also print the line."""
    rng = np.random.default_rng(0)
    density, vectors = _sketched(rng, terms, features, 0)
    _, seconds = _timed(lambda: density.at(vectors))
    _line("densities", (terms, features, None, None, None), seconds, bound)
    return seconds


def _sequences(terms: int, features: int, sequences: int, phrases: int, bound: float) -> float:
    """Return the seconds to draw sequences iteratively from a logarithmic ensemble of sketches; also print the line."""
    rng = np.random.default_rng(0)
    prefixes = keyphrases.ensemble_prefixes(phrases, "logarithmic")
    sketches = [_sketched(rng, terms, features, prefix) for prefix in prefixes]
    vectors = sketches[0][1]
    ensemble = [sketches[int(np.searchsorted(prefixes, j))][0] for j in range(1, phrases + 1)]
    _, seconds = _timed(lambda: keyphrases.iterative(ensemble, 0, vectors, sequences, rng))
    _line("iterative sequences", (terms, features, sequences, phrases, None), seconds, bound)
    return seconds


def _sketched(rng: np.random.Generator, terms: int, features: int, prefix: int) -> tuple[Density, keyphrases.Floats]:
    spec = SketchSpec(labels=1, features=features, paired=False, first=max(1, prefix), prefix=prefix)
    frequencies, phases = keyphrases.draw_frequencies(spec, _DIM, 1.0, rng)
    vectors = rng.standard_normal((terms, _DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Density.of(spec, frequencies, phases, 100 * rng.standard_normal(features)), vectors


def _texts(terms: int, documents: int) -> tuple[list[str], list[str]]:
    rng = np.random.default_rng(0)
    words = np.array([f"w{i}" for i in range(_SYLLABLES)])
    lengths = rng.integers(1, 5, 2 * terms)
    rows = words[rng.integers(0, _SYLLABLES, (2 * terms, 4))]
    terms_with_repeats = (" ".join(row[:length]) for row, length in zip(rows.tolist(), lengths.tolist(), strict=True))
    vocabulary = list(dict.fromkeys(terms_with_repeats))[:terms]
    texts = []
    for _ in range(documents):
        pieces = words[rng.integers(0, _SYLLABLES, 100)].tolist()
        pieces += [vocabulary[i] for i in rng.integers(0, len(vocabulary), 40)]
        rng.shuffle(pieces)
        texts.append(", ".join(pieces))
    return vocabulary, texts


def _timed(action: Callable[[], Result]) -> tuple[Result, float]:
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


def _line(what: str, sizes: tuple[int | None, ...], seconds: float, bound: float) -> None:
    columns = zip(sizes, (9, 10, 11, 9, 11), strict=True)
    cells = "".join(f"{'' if size is None else size:>{width}}" for size, width in columns)
    show(f"{what:24}{cells}{seconds:10.2f}{f'  (bound: {bound:g})' if bound else ''}\n")


if __name__ == "__main__":
    benchmark(main)
