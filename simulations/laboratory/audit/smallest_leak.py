r"""Smallest leak that `caucus-party audit` finds with 80 % probability, and how often it gives a false alarm.

    OMP_NUM_THREADS=1 python -m simulations.laboratory.audit.smallest_leak [banking10] [demo_notes] \
        [--texts 100 1000 10000] [--runs 20] [--alarms 100]

A leak is a number of synthetic texts that are copies of as many records of training, planted among otherwise
independent texts: verbatim, or near-verbatim, with each word replaced by another with probability 0.15. Each run splits
the records of a corpus at random into as many of training as of control. Independent texts of `demo_notes` are notes of
the same hospital from the same grammar; those of `banking10` are written by a chain of word pairs over messages that
are in no pool. Numbers of copies are searched by bisection in a list, with the same splits and texts for each number.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from client.disclosures import features, learning
from common import rng
from common.labelled_files import read_records
from common.models.encoder import Encoder
from server.tasks import demo_notes
from simulations.laboratory.results.data_sets import data_folder

COPIES = (4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28, 32, 36, 40, 44, 48, 56, 64, 80, 100, 128, 160, 200, 256, 400)
POWER = 0.8
CHANGED = 0.15
EPSILON, DELTA = 1.0, 1e-5
_SIDE = 450
"""Number of records of training, and of control."""
_BANK = 20_000
"""Number of independent texts to draw from."""

Found = Callable[[dict[str, NDArray[np.bool_]]], bool]


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Records to split, and texts that are independent of them.

    Attributes:
        records: Records without repetition.
        vectors: (records, d) their vectors.
        texts: Independent texts.
        text_vectors: (texts, d) their vectors.
    """

    records: Sequence[str]
    vectors: NDArray[np.float32]
    texts: Sequence[str]
    text_vectors: NDArray[np.float32]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each corpus and number of texts."""
    parser = argparse.ArgumentParser(prog="smallest_leak", description=__doc__.split("\n", 1)[0])
    parser.add_argument("corpora", nargs="*", metavar="CORPUS", default=list(CORPORA), help=" or ".join(CORPORA))
    parser.add_argument("--texts", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--alarms", type=int, default=100, help="runs without a leak")
    chosen = parser.parse_args(arguments)
    sys.stdout.write("| records | texts | verbatim | near-verbatim | verbatim, epsilon 1 rejected | false alarms |\n")
    for name in chosen.corpora:
        corpus = CORPORA[name]()
        for texts in chosen.texts:
            cells = [
                smallest(corpus, texts, found, changed=changed, runs=chosen.runs)
                for found, changed in ((learned, 0.0), (learned, CHANGED), (broken, 0.0))
            ]
            shown = " | ".join(f"{copies} ({copies / texts:.2%})" if copies else "none" for copies in cells)
            alarms = sum(learned(disclosed(corpus, texts, 0, run=-1 - run)) for run in range(chosen.alarms))
            sys.stdout.write(f"| {name} | {texts:,} | {shown} | {alarms} of {chosen.alarms} |\n")
            sys.stdout.flush()
    return 0


def smallest(corpus: Corpus, texts: int, found: Found, *, changed: float, runs: int) -> int | None:
    """Return the smallest number of copies in `COPIES` that is found in a share `POWER` of the runs; None if none is.

    Args:
        corpus: Records and independent texts.
        texts: M, number of synthetic texts, copies included.
        found: Whether a test rejects, from the flags of a run.
        changed: Probability of another word.
        runs: Number of runs for each number of copies.
    """
    low, high = 0, sum(copies <= texts for copies in COPIES)
    most = high
    while low < high:
        middle = (low + high) // 2
        hits = sum(found(disclosed(corpus, texts, COPIES[middle], changed=changed, run=run)) for run in range(runs))
        low, high = (low, middle) if hits >= POWER * runs else (middle + 1, high)
    return COPIES[low] if low < most else None


def disclosed(
    corpus: Corpus, texts: int, copies: int, *, changed: float = 0.0, run: int
) -> dict[str, NDArray[np.bool_]]:
    """Split the records, plant copies among independent texts, and return the features' flags."""
    generator = rng.experiment(run, "split", texts)
    pool = generator.permutation(len(corpus.records))[: 2 * _SIDE]
    others = generator.permutation(len(corpus.texts))[: texts - copies]
    records = [corpus.records[place] for place in pool]
    planted = [_changed(record, corpus, changed, generator) for record in records[:copies]]
    vectors = np.concatenate([corpus.text_vectors[others], Encoder.hashed_ngrams().encode(planted)])
    return features.disclosed(
        records,
        [*(corpus.texts[place] for place in others), *planted],
        nearness=features.nearest(corpus.vectors[pool], vectors),
        personal=values_of,
    )


def learned(flags: dict[str, NDArray[np.bool_]]) -> bool:
    """Return whether a feature rejects "no learning"."""
    return any(test.rejected for test in learning.learning(flags, _SIDE))


def broken(flags: dict[str, NDArray[np.bool_]]) -> bool:
    """Return whether a feature rejects `EPSILON` and `DELTA`."""
    return any(test.rejected for test in learning.promise(flags, _SIDE, epsilon=EPSILON, delta=DELTA))


@cache
def values_of(text: str) -> set[features.Words]:
    """Return `features.personal_values`, computed once for each text."""
    return features.personal_values(text)


def _changed(text: str, corpus: Corpus, probability: float, generator: np.random.Generator) -> str:
    words = text.split()
    for place in np.flatnonzero(generator.random(len(words)) < probability):
        words[place] = str(generator.choice(corpus.texts[int(generator.integers(len(corpus.texts)))].split()))
    return " ".join(words)


def _corpus(records: Sequence[str], texts: Sequence[str]) -> Corpus:
    kept = [*{features.words_of(record): record for record in records}.values()]
    encode = Encoder.hashed_ngrams().encode
    return Corpus(records=kept, vectors=encode(kept), texts=texts, text_vectors=encode(texts))


def _demo_notes() -> Corpus:
    records, texts = (
        [record.text for record in demo_notes.private_notes(0, count, seed)] for count, seed in ((1500, 1), (_BANK, 2))
    )
    return _corpus(records, texts)


def _banking10() -> Corpus:
    messages = [record.text for record in read_records(data_folder() / "banking10" / "train.csv")]
    generator = rng.experiment(0, "messages")
    messages = [messages[place] for place in generator.permutation(len(messages))]
    return _corpus(messages[450:], _chained(messages[:450], generator))


def _chained(messages: Sequence[str], generator: np.random.Generator) -> list[str]:
    """Write texts in which each three words in a row are in a message."""
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


CORPORA: dict[str, Callable[[], Corpus]] = {"banking10": _banking10, "demo_notes": _demo_notes}

if __name__ == "__main__":
    sys.exit(main())
