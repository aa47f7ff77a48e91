"""Tiny records, and a query of each kind, for tests of a party's contributions."""

import numpy as np

from client.records import EmbeddedRecords
from common.queries import class_sums, correct_count, histograms, label_sets, section_order, self_similarity, votes
from common.queries.class_sums import ClassSumsSpec
from common.queries.correct_count import CorrectCountSpec
from common.queries.histograms import LabelHistogramSpec, LengthHistogramSpec, VocabularySpec
from common.queries.label_sets import LabelSetsSpec
from common.queries.questionnaire import Questionnaire, QuestionnaireSpec
from common.queries.questions import QUESTIONS
from common.queries.section_order import SectionOrderSpec
from common.queries.self_similarity import SelfSimilaritySpec
from common.queries.sketch import Sketch, SketchSpec
from common.queries.terms import encode_terms
from common.queries.votes import VotesSpec

TERMS = ("fever", "chest pain", "pain", "cough", "pain relief drug")
"""Terms with words that also occur in longer terms."""


def unit(rows):
    rows = np.asarray(rows, dtype=np.float64)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def random_units(rng, count, dim):
    return unit(rng.standard_normal((count, dim)))


def embedded(texts, labels=None, vectors=None, owners=None):
    count = len(texts)
    return EmbeddedRecords(
        vectors=np.ones((count, 1), np.float32) if vectors is None else np.asarray(vectors, np.float32),
        labels=np.zeros(count, np.int32) if labels is None else np.asarray(labels, np.int32).reshape(count),
        texts=tuple(texts),
        owners=owners,
    )


def chosen(records, places):
    """Return the records with these indices, in the order of the indices."""
    return EmbeddedRecords(
        vectors=records.vectors[places],
        labels=records.labels[places],
        texts=tuple(records.texts[place] for place in places),
    )


def sketch(frequencies, phases=None, *, terms=TERMS, vectors=None, **spec):
    """Return a sketch query.

    Its features are paired if `phases` is None; their number follows from the frequencies.
    """
    frequencies = np.asarray(frequencies, np.float32)
    paired = phases is None
    if vectors is None:
        dim = frequencies.shape[1] // max(1, spec.get("prefix", 0))
        vectors = np.eye(dim, dtype=np.float32)[np.arange(len(terms)) % dim]
    settings = {"labels": 2, "features": len(frequencies) * (2 if paired else 1), "paired": paired, "first": 3}
    return Sketch(
        spec=SketchSpec(**(settings | spec)),
        terms=encode_terms(terms),
        vectors=vectors,
        frequencies=frequencies,
        phases=np.zeros(0, np.float32) if paired else np.asarray(phases, np.float32),
    )


def sums(basis, centres, radius=1.0, **spec):
    """Return a query for class sums along the rows of `basis`, with one centre per label."""
    basis, centres = np.asarray(basis, np.float32), np.asarray(centres, np.float32)
    settings = {"labels": len(centres), "directions": len(basis), "count": 512}
    return class_sums.ClassSums(
        spec=ClassSumsSpec(**(settings | spec)),
        basis=basis,
        centres=centres,
        radius=np.array([radius], np.float32),
    )


def questionnaire(basis, centres, radius=1.0, *, terms=TERMS, **spec):
    """Return the query of `sums` with all questions, of weight 20, and a record's first two terms, of weight 10.

    If `terms` is empty, the query has no terms.
    """
    of_sums = sums(basis, centres, radius)
    settings = dict.fromkeys((question.name for question in QUESTIONS), 20)
    settings |= {"first": 2 * bool(terms), "term": 10 * bool(terms)}
    return Questionnaire(
        spec=QuestionnaireSpec(
            **{"labels": of_sums.spec.labels, "directions": of_sums.spec.directions, "count": 512} | settings | spec
        ),
        basis=of_sums.basis,
        centres=of_sums.centres,
        radius=of_sums.radius,
        terms=encode_terms(terms) if terms else np.zeros(0, np.uint8),
    )


def random_basis(rng, directions, dim):
    return np.linalg.qr(rng.standard_normal((dim, directions)))[0].T.astype(np.float32)


def every_summed_query(rng, dim, candidates=40):
    """Return one query of each summed kind, for records with three labels and texts that consist of `TERMS`."""
    vectors = random_units(rng, candidates, dim)
    frequencies = rng.standard_normal((6, dim))
    of_terms = random_units(rng, len(TERMS), dim)
    return [
        votes.Votes(spec=VotesSpec(top=3), vectors=vectors, labels=rng.integers(0, 3, candidates).astype(np.int32)),
        histograms.LabelHistogram(spec=LabelHistogramSpec(labels=3)),
        label_sets.LabelSets(spec=LabelSetsSpec(labels=3, labels_per_record=2)),
        section_order.SectionOrder(spec=SectionOrderSpec(labels=3, labels_per_record=2)),
        histograms.LengthHistogram(spec=LengthHistogramSpec(bins=4), edges=np.array([2, 3, 7], np.int32)),
        histograms.Vocabulary(spec=VocabularySpec(first=2), terms=encode_terms(TERMS)),
        sketch(frequencies, vectors=of_terms, labels=3),
        sketch(frequencies, rng.uniform(0, 7, 6), vectors=of_terms, labels=3),
        sketch(rng.standard_normal((6, 3 * dim)), vectors=of_terms, labels=3, prefix=3),
        sums(random_basis(rng, 5, dim), random_units(rng, 3, dim) / 2, 0.3),
        questionnaire(random_basis(rng, 5, dim), random_units(rng, 3, dim) / 2, 0.3),
        self_similarity.SelfSimilarity(spec=SelfSimilaritySpec(buckets=120)),
        correct_count.CorrectCount(
            spec=CorrectCountSpec(),
            weights=rng.standard_normal((3, dim)).astype(np.float32),
            intercepts=np.zeros(3, np.float32),
        ),
    ]


def random_records(rng, count, dim, labels=3):
    words = ["fever", "chest", "pain", "relief", "drug", "cough", "and", "no"]
    texts = [" ".join(rng.choice(words, rng.integers(0, 9))) for _ in range(count)]
    # Equal texts have equal vectors.
    _, places = np.unique(texts, return_inverse=True)
    return embedded(texts, rng.integers(0, labels, count), random_units(rng, count, dim)[places])
