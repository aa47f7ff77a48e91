"""The worst case for every mechanism at once: a method that asks only about planted canaries.

Each record of a hospital is a canary, with a label that no other hospital has. Everybody knows all canaries. Half of
each hospital's canaries are in, and only the choice of this half is private. A canary's text repeats two words that are
unique to it, so that it changes coordinates that no other record changes, by the full sensitivity:

    votes                   4 candidates close to its vector, and 4 opposite to these
    vocabulary histogram    its two words
    length range            as long as the range: one more in each count
    seed choice             the candidate of its label, to which it gives all utility
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from common import rng
from common.domain import Record
from common.plan.planned import PlannedQuery
from common.queries.histograms import VocabularySpec
from common.queries.length_range import LengthRangeSpec
from common.queries.seed_choice import SeedChoiceSpec
from common.queries.terms import encode_terms
from common.queries.votes import VotesSpec
from server.domain import Candidate
from server.method import NoMemory, State
from server.operators.round_report import make_report

HOSPITALS, CANARIES = 3, 240
"""Number of hospitals, and of canaries per hospital; half of the canaries are in."""
TOP, CAP = 4, 500
VOTES, TERMS, LENGTHS, CHOICES = "votes", "terms", "lengths", "choices"
EPSILON = 20.0
SHARES = {VOTES: 0.62, TERMS: 0.1, LENGTHS: 0.08, CHOICES: 0.2}
ASKED = {VOTES: 1, TERMS: 1, LENGTHS: 6, CHOICES: 2}


def words():
    """Return the words of all canaries, (canaries, 2), all different; those of the first hospital come first."""
    drawn = rng.experiment(0, "words").integers(97, 123, (HOSPITALS * CANARIES, 2, 9), dtype=np.uint8)
    return [[bytes(word).decode() for word in pair] for pair in drawn]


def texts():
    return [" ".join(pair * (CAP // 2)) for pair in words()]


def planted(labels):
    """Return the records of each hospital, and whether each canary is among the records, (hospitals, canaries) bool."""
    written = np.array(texts(), dtype=object).reshape(HOSPITALS, CANARIES)
    coin = rng.experiment(int.from_bytes(rng.secure_bytes(8)), "canaries")
    inside = np.array([coin.permutation(CANARIES) < CANARIES // 2 for _ in range(HOSPITALS)])
    return [[Record(text, labels[at]) for text in written[at][inside[at]]] for at in range(HOSPITALS)], inside


def near(vectors):
    """Return (canaries, 2 TOP, dim): for each canary, TOP unit vectors at increasing distance, then their opposites."""
    aside = np.roll(vectors, 1, axis=1)
    aside -= (aside * vectors).sum(axis=1, keepdims=True) * vectors
    aside /= np.linalg.norm(aside, axis=1, keepdims=True)
    angles = 0.1 * np.arange(1, TOP + 1)[:, None]
    close = np.cos(angles) * vectors[:, None] + np.sin(angles) * aside[:, None]
    return np.concatenate([close, -close], axis=1).astype(np.float32)


def questions(encode):
    """Return the arrays of each query, given an encoder's `encode`."""
    vectors = encode(texts())
    hospitals = np.repeat(np.arange(HOSPITALS, dtype=np.int32), CANARIES)
    pool = vectors[::CANARIES]
    return {
        VOTES: {"vectors": near(vectors).reshape(-1, vectors.shape[1]), "labels": np.repeat(hospitals, 2 * TOP)},
        TERMS: {"terms": encode_terms(tuple(word for pair in words() for word in pair))},
        LENGTHS: {},
        CHOICES: {"vectors": pool, "labels": np.arange(HOSPITALS, dtype=np.int32)},
    }


@dataclass(frozen=True, kw_only=True)
class WorstCase:
    """A method that asks each question the planned number of times; it has only the settings that all methods have."""

    memory: ClassVar[type[NoMemory]] = NoMemory
    modes: ClassVar[dict] = {}
    name: str = "worst_case"
    samples: int = 8
    rounds: int = 1
    texts_per_request: int = 1

    def plan(self, task, target, membership):
        kinds = {
            VOTES: (VotesSpec(top=TOP, fine=4), "gaussian"),
            TERMS: (VocabularySpec(first=2), "laplace"),
            LENGTHS: (LengthRangeSpec(cap=CAP), "sparse vector"),
            CHOICES: (SeedChoiceSpec(choices=CANARIES // 2, nearest=1), "exponential"),
        }
        return tuple(
            PlannedQuery(
                name=name, spec=spec, mechanism=mechanism, times=ASKED[name], share=SHARES[name], pure=name != VOTES
            )
            for name, (spec, mechanism) in kinds.items()
        )

    def max_texts(self, task, models):
        return 0

    def compared(self, task):
        return {}

    def start(self, tools):
        return State(memory=NoMemory())

    def step(self, state, tools):
        for name, arrays in questions(tools.embed).items():
            for nth in range(ASKED[name]):
                tools.ask(name, nth, **arrays)
        candidates = tuple(
            Candidate(text=f"text {i} of {label}", label=label, model=self.name, round=0)
            for label in tools.task.labels
            for i in range(2)
        )
        report = make_report(0, tools.models, requested={}, generated=(), candidates=len(candidates), work=(), notes=[])
        return State(round=1, candidates=candidates, rounds=(report,), memory=NoMemory())


def shortest_stop(records, scale):
    """Return the probabilities, (CAP + 1,), of the shorter end of a length range over `records` records of full length.

    The high end is the first x at which records + 2b-noise <= b-noise, and the low end is found in the same way over no
    records, from CAP downward. The two may cross; the shorter one counts.
    """
    high, low = _reached(records, scale), _reached(0, scale)
    beyond = np.append(high * (1 - np.append(low[1:], 0)[::-1]), 0)
    return -np.diff(beyond)


def _reached(count, scale):
    """Return the probability, (CAP + 1,), that AboveThreshold on this count, repeated, has not stopped before x."""
    reach = math.ceil(40 * scale)
    noise, threshold = _laplace(2 * scale, 2 * reach), _laplace(scale, reach)
    stops = np.cumsum(noise)[np.clip(np.arange(-reach, reach + 1) - count + 2 * reach, 0, 4 * reach)]
    return threshold @ np.vander(1 - stops, CAP + 1, increasing=True)


def _laplace(scale, reach):
    weights = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    return weights / weights.sum()
