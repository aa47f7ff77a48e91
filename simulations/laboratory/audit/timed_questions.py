"""The questions that the timing audit asks: one of each kind, and choices of seeds that take as long as they can."""

from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from client.records import EmbeddedRecords
from common.plan.planned import PlannedQuery
from common.queries.class_sums import ClassSums, ClassSumsSpec
from common.queries.correct_count import CorrectCount, CorrectCountSpec
from common.queries.histograms import (
    LabelHistogram,
    LabelHistogramSpec,
    LengthHistogram,
    LengthHistogramSpec,
    Vocabulary,
    VocabularySpec,
)
from common.queries.label_sets import LabelSets, LabelSetsSpec
from common.queries.length_range import LengthRange, LengthRangeSpec
from common.queries.page import Query
from common.queries.questionnaire import Questionnaire, QuestionnaireSpec
from common.queries.questions import QUESTIONS
from common.queries.section_order import SectionOrder, SectionOrderSpec
from common.queries.seed_choice import SeedChoice, SeedChoiceSpec
from common.queries.self_similarity import SelfSimilarity, SelfSimilaritySpec
from common.queries.sketch import Sketch, SketchSpec
from common.queries.terms import MOST_WORDS, encode_terms

DIMENSIONS = 384
KNOWN = tuple(f"known{place}" for place in range(150))
"""Words of the text that the coordinator knows."""
FEW, SMALL = (2, 12, 30), (0.25, 0.01)
"""Numbers of candidates, and scales of the noise, at which most of the work of a choice is to toss coins."""


def slowest_choices(choices: int) -> Iterator[tuple[SeedChoice, PlannedQuery, EmbeddedRecords]]:
    """Yield questions for choices of seeds, as planned, each with as many records as choices, for which it takes long.

    One candidate has utility 1 for each record and the others 0, so that the number of coins per choice is as large as
    it can be (`common.schedule.tosses`).
    """
    for candidates, scale in product(FEW, SMALL):
        vectors = np.repeat(-np.eye(1, DIMENSIONS, dtype=np.float32), candidates, axis=0)
        vectors[0] *= -1
        query = SeedChoice(
            spec=SeedChoiceSpec(choices=choices), vectors=vectors, labels=np.zeros(candidates, dtype=np.int32)
        )
        records = EmbeddedRecords(
            vectors=np.repeat(vectors[:1], choices, axis=0),
            labels=np.zeros(choices, dtype=np.int32),
            texts=tuple(map(str, range(choices))),
        )
        for mechanism in query.spec.mechanisms:
            yield query, PlannedQuery(name="timed", spec=query.spec, mechanism=mechanism, scale=scale), records


def questions(rows: NDArray[np.float32]) -> Iterator[Query]:
    """Yield a question of each kind except votes, with a size that methods use."""
    generator = np.random.default_rng(1)
    terms, basis = encode_terms(tuple(f"word{number}" for number in range(500))), np.eye(DIMENSIONS, dtype=np.float32)
    of_terms = unit(generator.normal(size=(500, DIMENSIONS)))
    no_labels = np.zeros(len(rows), dtype=np.int32)
    space = {"basis": basis[:128], "centres": basis[:1], "radius": np.array([0.4], dtype=np.float32)}
    yield ClassSums(spec=ClassSumsSpec(labels=1, directions=128, count=512), **space)
    weights = {question.name: 256 for question in QUESTIONS} | {"first": 16, "term": 128}
    spec = QuestionnaireSpec(labels=1, directions=128, count=256, **weights)
    yield Questionnaire(spec=spec, terms=terms, **space)
    yield Sketch(
        spec=SketchSpec(labels=1, features=256),
        terms=terms,
        vectors=of_terms,
        frequencies=generator.normal(size=(128, DIMENSIONS)).astype(np.float32),
        phases=np.zeros(0, dtype=np.float32),
    )
    almost = (" ".join((*KNOWN[place : place + MOST_WORDS - 1], "otherwise")) for place in range(len(KNOWN)))
    yield Vocabulary(spec=VocabularySpec(first=10), terms=encode_terms(tuple(almost)))
    yield LabelHistogram(spec=LabelHistogramSpec(labels=1))
    yield LabelSets(spec=LabelSetsSpec(labels=1))
    yield SectionOrder(spec=SectionOrderSpec(labels=1))
    yield LengthHistogram(spec=LengthHistogramSpec(bins=4), edges=np.array([3, 5, 9], dtype=np.int32))
    yield SelfSimilarity(spec=SelfSimilaritySpec(buckets=1000))
    yield CorrectCount(spec=CorrectCountSpec(), weights=basis[:10], intercepts=np.zeros(10, dtype=np.float32))
    yield SeedChoice(spec=SeedChoiceSpec(choices=100), vectors=rows, labels=no_labels)
    yield LengthRange(spec=LengthRangeSpec(cap=500))


def unit(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return the rows, scaled to unit norm."""
    scaled: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return scaled
