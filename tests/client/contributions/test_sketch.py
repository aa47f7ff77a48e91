"""The sketch against its definition, and against the kernel density that it estimates."""

import math

import numpy as np
import pytest

from client.contributions import sketch as module
from client.contributions.counts import first_terms
from client.contributions.sketch import contribution
from common.queries.sketch import features
from tests.support import asking
from tests.support.asking import TERMS, chosen, embedded, random_records, random_units


def _points(query, text):
    """The definition: the points of one record."""
    (terms,) = first_terms(TERMS, [text], query.spec.prefix or query.spec.first)
    vectors = query.vectors[list(terms)]
    if not query.spec.prefix or not terms:
        return vectors
    padded = np.zeros((query.spec.prefix, vectors.shape[1]), np.float32)
    padded[: len(vectors)] = vectors
    return padded.reshape(1, -1)


def _of_points(query, points):
    return features(points.astype(np.float64) @ query.frequencies.T.astype(np.float64), query.phases)


def _queries(rng, dim, features_of_each=40, **spec):
    vectors = random_units(rng, len(TERMS), dim)
    for prefix in (0, 1, 3):
        frequencies = rng.standard_normal((features_of_each, max(1, prefix) * dim))
        for phases in (None, rng.uniform(0, 2 * np.pi, features_of_each)):
            yield asking.sketch(frequencies, phases, vectors=vectors, prefix=prefix, **spec)


def test_equals_the_definition():
    rng = np.random.default_rng(1)
    records = random_records(rng, 25, 4, labels=2)
    differing = 0
    for query in _queries(rng, 7, grid=2**14):
        for record in range(25):
            expected = np.zeros((2, query.spec.features))
            points = _points(query, records.texts[record])
            if len(points):
                mean = _of_points(query, points).mean(axis=0)
                expected[records.labels[record]] = np.trunc(query.spec.grid * mean)
            got = contribution(query, chosen(records, [record]))
            assert got.dtype == np.int64
            # Rounding of vectors and frequencies moves a few values over an integer.
            assert np.abs(got - expected.ravel()).max() <= 1
            differing += np.count_nonzero(got != expected.ravel())
    assert differing < 0.01 * 25 * 6 * 120


def test_known_values():
    # Vectors on the axes and one frequency along them: sqrt(2) w . x is 45 degrees for "fever", 0 for "chest pain".
    vectors = np.eye(5, dtype=np.float32)
    frequencies = np.zeros((2, 5))
    frequencies[1, 0] = math.pi / 4 / math.sqrt(2)
    records = embedded(["fever", "fever chest pain", "nothing"], [0, 1, 1])
    paired = asking.sketch(frequencies, vectors=vectors, grid=100)
    assert contribution(paired, records).tolist() == [100, 70, 0, 70, 100, 85, 0, 35]
    single = asking.sketch(frequencies, [0, 1], vectors=vectors, grid=100)
    assert contribution(single, records).tolist() == [141, -30, 141, 23]
    # As second of a prefix "chest pain" adds 22.5 degrees.
    second = np.zeros((2, 5))
    second[1, 1] = math.pi / 8 / math.sqrt(2)
    prefix = asking.sketch(np.concatenate([frequencies, second], axis=1), vectors=vectors, grid=100, prefix=2)
    assert contribution(prefix, records).tolist() == [100, 70, 0, 70, 100, 38, 0, 92]


def test_labels_outside_and_texts_without_terms_add_nothing():
    query = asking.sketch(np.zeros((2, 3)))
    assert not contribution(query, embedded(["nothing", "", "fever"], [0, 1, 2])).any()
    assert not contribution(query, embedded([])).any()


@pytest.mark.parametrize("parties", [2, 7, 60])
def test_parties_sum_to_the_whole_to_the_last_bit_whatever_the_chunks(monkeypatch, parties):
    rng = np.random.default_rng(2)
    records = random_records(rng, 300, 2, labels=2)
    queries = list(_queries(rng, 96, 30, grid=2**20))
    whole = [contribution(query, records) for query in queries]
    monkeypatch.setattr(module, "_CHUNK_BYTES", 8 * 6 * 305 * 7)
    monkeypatch.setattr(module, "_ROWS", 2)
    for query, expected in zip(queries, whole, strict=True):
        split = np.array_split(rng.permutation(300), parties)
        assert np.array_equal(sum(contribution(query, chosen(records, part)) for part in split), expected)


def test_one_frequency_at_a_time_if_there_are_very_many_records(monkeypatch):
    rng = np.random.default_rng(3)
    records = random_records(rng, 20, 2, labels=2)
    query = next(_queries(rng, 5, 6))
    whole = contribution(query, records)
    monkeypatch.setattr(module, "_CHUNK_BYTES", 1)
    assert np.array_equal(contribution(query, records), whole)


@pytest.mark.parametrize("dim", [6, 384])
def test_estimates_the_density_of_each_label_within_its_monte_carlo_error(dim):
    rng = np.random.default_rng(4)
    rows, bandwidth = 2000, 1.0
    vectors = random_units(rng, len(TERMS), dim)
    records = random_records(rng, 200, 2, labels=2)
    for prefix in (0, 2):
        frequencies = rng.standard_normal((rows, max(1, prefix) * dim)) / bandwidth
        for phases in (None, rng.uniform(0, 2 * np.pi, rows)):
            query = asking.sketch(frequencies, phases, vectors=vectors, prefix=prefix, grid=2**12)
            sums = contribution(query, records).reshape(2, -1) / query.spec.grid
            for label in (0, 1):
                points = [
                    _points(query, text)
                    for text, record_label in zip(records.texts, records.labels, strict=True)
                    if record_label == label and len(_points(query, text))
                ]
                for asked_for in (points[0][0], points[1][-1]):
                    kernels = [np.exp(-((of - asked_for) ** 2).sum(axis=1) / bandwidth**2).mean() for of in points]
                    estimates = sums[label] * _of_points(query, asked_for[None])[0]
                    if query.spec.paired:
                        estimates = estimates.reshape(2, rows).sum(axis=0)
                    estimate = estimates.mean() / len(points)
                    standard_error = estimates.std() / len(points) / rows**0.5
                    # 5 standard errors: a false alarm of 6e-7 over frequencies, none for these; and rounding toward
                    # zero, of each coordinate by less than 1 on the grid.
                    assert abs(estimate - np.mean(kernels)) < 5 * standard_error + 2 / query.spec.grid
                    assert standard_error < 0.02
