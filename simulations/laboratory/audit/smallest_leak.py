r"""Smallest leak that `caucus-party audit` finds with 80 % probability, and how often it gives a false alarm.

    OMP_NUM_THREADS=1 python -m simulations.laboratory.audit.smallest_leak [cfpb8] [demo_notes] ... \
        [--texts 100 1000 10000] [--runs 40]

A leak is a number of synthetic texts that are copies of as many records of training, planted among M independent texts:
verbatim, or near-verbatim, with each word replaced by another with probability 0.15. Each run draws a pool from the
records of a set and splits it into as many of training as of control. The independent texts are other records of the
set, as perfect synthetic texts would be; where it has fewer than M, a chain of word pairs writes texts from them, three
words at a time. For `demo_notes` they are notes of the same grammar.

In each run bisection finds the smallest of the `COPIES` with which a feature rejects "no learning"; over the runs the
80 % quantile of these numbers is shown, with the interval of its order statistics. A false alarm needs another split
only: which records are disclosed depends on the pool and not on the split, so each run tosses `SPLITS` of them.
"""

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from client.disclosures import features, learning
from client.disclosures.features import Evidence
from common import rng
from common.models.encoder import Encoder
from server.metrics import intervals
from server.tasks import demo_notes
from simulations.laboratory.results.data_sets import whole_set

COPIES = (4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28, 32, 36, 40, 44, 48, 56, 64, 80, 100, 128, 160, 200, 256, 400)
POWER = 0.8
CHANGED = 0.15
EPSILON, DELTA = 1.0, 1e-5
SPLITS = 250
GUARANTEES = 5
"""Largest number of runs in which the guarantee is tested, since each test takes long, with so many copies."""
_SIDE = 450
"""Number of training records, and of control records."""
_BANK = 20_000
"""Number of independent texts of a grammar or a chain to draw from."""

Flags = dict[str, NDArray[np.bool_]]


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Records to split, and texts that are independent of them.

    Attributes:
        records: Texts of the records, without repetition.
        vectors: (records, d) vectors of the records.
        texts: Independent texts.
        text_vectors: (texts, d) vectors of the independent texts.
        source: Name of the source of the independent texts.
    """

    records: Sequence[str]
    vectors: NDArray[np.float32]
    texts: Sequence[str]
    text_vectors: NDArray[np.float32]
    source: str


class Run:
    """One random split of a corpus into training and control records, with M independent texts.

    Args:
        corpus: Records and independent texts.
        texts: M, number of independent texts.
        number: Number of the run, from which its random choices are drawn.
    """

    def __init__(self, corpus: Corpus, texts: int, number: int) -> None:
        self._generator = rng.experiment(number, "split", texts)
        pool = self._generator.permutation(len(corpus.records))[: 2 * _SIDE]
        others = self._generator.permutation(len(corpus.texts))[:texts]
        self._corpus, self._vectors = corpus, corpus.vectors[pool]
        self._records = [corpus.records[place] for place in pool]
        self._pool = features.Pool(self._records, personal=values_of)
        self._independent = self._evidence([corpus.texts[place] for place in others], corpus.text_vectors[others])

    def leaking(self, copies: Sequence[str]) -> Flags:
        """Return for each feature which records are disclosed if these texts are planted among the independent ones."""
        planted = self._evidence(copies, Encoder.hashed_ngrams().encode(copies))
        return self._independent.joined(planted).flags()

    def smallest(self, changed: float) -> float:
        """Return the smallest number in `COPIES` with which the leak is found, by bisection; infinity if there is none.

        Args:
            changed: Probability with which each word of a copy is replaced by another.
        """
        most = sum(copies <= _SIDE for copies in COPIES)
        planted = [self._changed(record, changed) for record in self._records[: COPIES[most - 1]]]
        low, high = 0, most
        while low < high:
            middle = (low + high) // 2
            found = learned(self.leaking(planted[: COPIES[middle]]))
            low, high = (low, middle) if found else (middle + 1, high)
        return COPIES[low] if low < most else math.inf

    def broken(self) -> bool:
        """Return whether a feature rejects the guarantee (`EPSILON`, `DELTA`) with the most verbatim copies."""
        flags = self.leaking(self._records[: min(_SIDE, COPIES[-1])])
        return any(test.rejected for test in learning.promise(flags, _SIDE, epsilon=EPSILON, delta=DELTA))

    def alarms(self) -> float:
        """Return the rate of false alarms: the fraction of `SPLITS` other splits in which a false leak is found."""
        flags, found = self._independent.flags(), 0
        for _ in range(SPLITS):
            split = self._generator.permutation(2 * _SIDE)
            found += learned({name: flag[split] for name, flag in flags.items()})
        return found / SPLITS

    def _evidence(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> Evidence:
        return self._pool.evidence(texts, nearness=features.nearest(self._vectors, vectors))

    def _changed(self, text: str, probability: float) -> str:
        words, texts, generator = text.split(), self._corpus.texts, self._generator
        for place in np.flatnonzero(generator.random(len(words)) < probability):
            words[place] = str(generator.choice(texts[int(generator.integers(len(texts)))].split()))
        return " ".join(words)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each corpus and number of texts."""
    parser = argparse.ArgumentParser(prog="smallest_leak", description=__doc__.split("\n", 1)[0])
    parser.add_argument("corpora", nargs="*", metavar="CORPUS", default=list(CORPORA), help=" or ".join(CORPORA))
    parser.add_argument("--texts", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--runs", type=int, default=40)
    chosen = parser.parse_args(arguments)
    most = f"{min(_SIDE, COPIES[-1])} copies reject epsilon {EPSILON:g}"
    sys.stdout.write(f"| records | texts | from | verbatim | near-verbatim | {most} | false alarms |\n")
    for name in chosen.corpora:
        for texts in chosen.texts:
            sys.stdout.write(f"| {name} | {texts:,} | {row(CORPORA[name](texts), texts, runs=chosen.runs)} |\n")
            sys.stdout.flush()
    return 0


def row(corpus: Corpus, texts: int, *, runs: int) -> str:
    """Return a row's cells: source, smallest leaks, rejections of the guarantee, and the rate of false alarms."""
    verbatim, near, broken, alarms = [], [], 0, []
    guarantees = min(runs, GUARANTEES)
    for number in range(runs):
        run = Run(corpus, texts, number)
        verbatim.append(run.smallest(0.0))
        near.append(run.smallest(CHANGED))
        broken += number < guarantees and run.broken()
        alarms.append(run.alarms())
    low, high = intervals.over_seeds(alarms) or (0.0, 1.0)
    rate = f"{np.mean(alarms):.1%} ({max(low, 0):.1%} to {high:.1%})"
    return (
        f"{corpus.source} | {quantile(verbatim, texts)} | {quantile(near, texts)} | {broken} of {guarantees} | {rate}"
    )


def quantile(found: Sequence[float], texts: int) -> str:
    """Return a cell: the number of copies found in a fraction `POWER` of the runs, its ratio to M, and its interval.

    Args:
        found: Smallest number of copies that is found in each run.
        texts: M, number of independent texts.
    """
    ordered = [*sorted(found), math.inf]
    low, high = (stats.binom(len(found), POWER).ppf(level) for level in (0.025, 0.975))
    value = ordered[math.ceil(POWER * len(found)) - 1]
    ends = f"{ordered[max(0, int(low) - 1)]:g} to {ordered[int(high)]:g}"
    return (f"{value:g} ({value / texts:.2%})" if value < math.inf else "none") + f"; {ends}"


def learned(flags: Flags) -> bool:
    """Return whether a feature rejects "no learning"."""
    return any(test.rejected for test in learning.learning(flags, _SIDE))


@cache
def values_of(text: str) -> set[features.Words]:
    """Return `features.personal_values`, computed once for each text."""
    return features.personal_values(text)


def _corpus(records: Sequence[str], texts: Sequence[str], source: str) -> Corpus:
    kept = [*{features.words_of(record): record for record in records}.values()]
    encode = Encoder.hashed_ngrams().encode
    return Corpus(records=kept, vectors=encode(kept), texts=texts, text_vectors=encode(texts), source=source)


@cache
def _demo_notes() -> Corpus:
    records, texts = (
        [record.text for record in demo_notes.private_notes(0, count, seed)] for count, seed in ((1500, 1), (_BANK, 2))
    )
    return _corpus(records, texts, "the grammar")


@cache
def _set(name: str, *, chained: bool) -> Corpus:
    texts, generator = _shuffled(name)
    records, others = texts[: 2 * _SIDE], texts[2 * _SIDE :]
    return _corpus(records, _chained(others, generator), "a chain") if chained else _corpus(records, others, "the set")


def _shuffled(name: str) -> tuple[list[str], np.random.Generator]:
    """Return the texts of a set without repetition, in random order, and the generator of this order."""
    texts = [*{features.words_of(record.text): record.text for record in whole_set(name)}.values()]
    generator = rng.experiment(0, "messages", name)
    return [texts[place] for place in generator.permutation(len(texts))], generator


def _of_set(name: str) -> Callable[[int], Corpus]:
    def corpus(texts: int) -> Corpus:
        plain = _set(name, chained=False)
        return plain if len(plain.texts) >= texts else _set(name, chained=True)

    return corpus


def _chained(messages: Sequence[str], generator: np.random.Generator) -> list[str]:
    """Return `_BANK` random texts in which any three consecutive words are consecutive in a message."""
    following = defaultdict(list)
    for message in messages:
        words = ["", "", *message.split(), ""]
        for first, second, third in zip(words, words[1:], words[2:], strict=False):
            following[first, second].append(third)
    texts: list[str] = []
    while len(texts) < _BANK:
        words = ["", ""]
        while len(words) == 2 or words[-1]:
            after = following[words[-2], words[-1]]
            words.append(after[generator.integers(len(after))])
        texts.append(" ".join(words[2:-1]))
    return texts


SETS = ("banking10", "cfpb8", "medquad10", "mts_notes8")
CORPORA: dict[str, Callable[[int], Corpus]] = {name: _of_set(name) for name in SETS} | {
    "demo_notes": lambda _: _demo_notes()
}

if __name__ == "__main__":
    sys.exit(main())
