"""The subspace is a function of what is public alone; estimates believe an answer as far as its noise allows."""

import numpy as np
import pytest

from common.queries.class_sums import ClassSums, ClassSumsSpec
from server.operators.class_sums import (
    NoisySums,
    Subspace,
    basis,
    estimates,
    label_means,
    posteriors,
    softness,
    subspace,
)
from tests.support.asking import unit

C, DIM = 3, 12


DESCRIPTIONS = unit(np.random.default_rng(5).normal(size=(C, DIM)))
SETTINGS = {"directions": 4, "description": 0.5, "quantile": 0.75}


@pytest.fixture
def candidates():
    """60 vectors of three labels: these lie apart along two axes, and within them spread along a third."""
    draws = np.random.default_rng(0)
    labels = np.arange(60) % C
    places = np.zeros((60, DIM))
    places[:, 5] = 1
    places[labels == 0, 0], places[labels == 1, 1] = 0.9, 0.5
    places[:, 2] = draws.normal(0, 0.4, 60)
    places += draws.normal(0, 0.01, places.shape)
    return unit(places), labels


def noisy(sums, counts, *, noise, count=0.5, radius=1.0):
    sums = np.asarray(sums, dtype=float)
    basis, centres = np.eye(sums.shape[1], DIM, dtype="f4"), np.zeros((len(sums), DIM), "f4")
    return NoisySums(
        labels=tuple(f"label {number}" for number in range(len(sums))),
        subspace=Subspace(basis=basis, centres=centres, radius=radius),
        softness=0.1,
        sums=sums,
        counts=np.asarray(counts, dtype=float),
        noise=noise,
        count_noise=noise / count,
    )


def test_differences_of_labels_come_first_then_what_varies_within_them(candidates):
    vectors, labels = candidates
    rows = basis(vectors, labels, C, 4)
    means = label_means(vectors, labels, C)
    spread = means - means.mean(axis=0)
    assert np.allclose(spread @ rows[:2].T @ rows[:2], spread, atol=1e-9)
    inside = vectors - means[labels]
    along = ((inside @ rows.T) ** 2).sum(axis=0)
    assert along[2] > 20 * along[3]
    assert np.abs(rows[2]).argmax() == 2


@pytest.mark.parametrize("directions", [1, 2, 5, DIM])
@pytest.mark.parametrize("count", [1, 3, 60])
def test_the_number_of_directions_is_as_planned_however_few_candidates_there_are(candidates, directions, count):
    vectors, labels = (part[:count] for part in candidates)
    rows = basis(vectors, labels, C, directions)
    assert np.allclose(rows @ rows.T, np.eye(directions), atol=1e-9)
    assert np.array_equal(rows, basis(vectors.copy(), labels.copy(), C, directions))
    assert (np.take_along_axis(rows, np.abs(rows).argmax(axis=1, keepdims=True), axis=1) > 0).all()


def test_candidates_that_are_all_alike_have_a_subspace_that_a_party_accepts():
    vectors = unit(np.tile(np.arange(1.0, DIM + 1), (6, 1)))
    space = subspace(vectors, np.arange(6) % 2, vectors[:2], **SETTINGS | {"directions": 5, "description": 0.0})
    radius = np.array([space.radius], dtype=np.float32)
    spec = ClassSumsSpec(labels=2, directions=5, count=512)
    ClassSums(spec=spec, basis=space.basis, centres=space.centres, radius=radius).check(2, DIM)


def test_a_centre_lies_between_the_labels_candidates_and_its_description(candidates):
    vectors, labels = candidates
    means = label_means(vectors, labels, C)
    length = np.linalg.norm(means, axis=1).mean()
    for weight in (0.0, 0.5, 1.0):
        space = subspace(vectors, labels, DESCRIPTIONS, **SETTINGS | {"description": weight})
        assert np.allclose(space.centres, (1 - weight) * means + weight * length * DESCRIPTIONS, atol=1e-6)
        assert np.linalg.norm(space.centres, axis=1).max() <= 1


def test_the_radius_reaches_the_share_of_the_candidates(candidates):
    vectors, labels = candidates
    space = subspace(vectors, labels, DESCRIPTIONS, **SETTINGS)
    lengths = np.linalg.norm((vectors - space.centres[labels]) @ space.basis.T, axis=1)
    assert np.mean(lengths <= space.radius * 1.00001) == pytest.approx(0.75, abs=0.02)


def test_a_classifier_is_as_soft_as_its_candidates_labels_are_uncertain(candidates):
    vectors, labels = candidates
    centres = label_means(vectors, labels, C)
    wrong = np.where(np.arange(60) % 5 == 0, (labels + 1) % C, labels)
    sure, unsure = softness(vectors, labels, centres), softness(vectors, wrong, centres)
    assert 0.005 <= sure <= unsure <= 2
    posterior = posteriors(vectors, centres, sure)
    assert np.allclose(posterior.sum(axis=1), 1)
    assert np.array_equal(posterior.argmax(axis=1), labels)
    distances = ((vectors[:, None] - centres[None]) ** 2).sum(axis=2)
    assert np.array_equal(posterior.argmax(axis=1), distances.argmin(axis=1))
    assert posteriors(vectors, centres, 2.0).max() < posterior.max()


def test_without_noise_the_estimates_of_many_records_are_the_means_and_shares_themselves():
    summary = estimates(noisy([[3e6, 0], [0, 6e6]], [1e7, 3e7], noise=0, radius=0.5))
    assert np.allclose(summary.means[:, :2], [[0.15, 0], [0, 0.1]])
    assert np.allclose(summary.means[:, 2:], 0)
    assert np.allclose(summary.shares, [0.25, 0.75])
    assert np.allclose(summary.kept, 1, atol=1e-4)


def test_the_mean_of_few_records_is_shrunk_though_there_is_no_noise():
    few, many = (estimates(noisy([[0.3 * n, 0], [0, 0.2 * n]], [n, n], noise=0)).kept[0] for n in (3, 300))
    assert few < 0.5
    assert 0.9 < many < 1


def test_the_more_noise_the_less_of_an_offset_is_kept():
    sums, counts = np.random.default_rng(0).normal(0, 5, (4, 8)), [10, 10, 10, 10]
    kept = [estimates(noisy(sums, counts, noise=noise)).kept.mean() for noise in (0, 0.1, 2, 5, 100)]
    assert kept == sorted(kept, reverse=True)
    assert kept[1] > 0.95
    assert kept[-1] < 0.01


def test_shrinkage_is_nearer_to_the_truth_than_what_was_measured():
    draws, errors = np.random.default_rng(1), []
    for _ in range(40):
        truth = draws.normal(0, 0.2, (10, 8))
        taken = noisy(10 * truth + draws.normal(0, 4, truth.shape), np.full(10, 10) + draws.normal(0, 8, 10), noise=4)
        errors.append([np.square(estimates(taken, shrinkage=on).means[:, :8] - truth).sum() for on in (True, False)])
    shrunk, raw = np.mean(errors, axis=0)
    assert shrunk < 10 * 8 * 0.2**2  # than believing nothing
    assert shrunk < 0.5 * raw


@pytest.mark.parametrize("shrinkage", [True, False])
@pytest.mark.parametrize("counts", [[0, 0, 0], [-50, -20, -7], [1e-9, 0, -1e-9], [-30, 40, 2]])
def test_noisy_counts_near_zero_or_below_make_no_mean_grow_beyond_bounds(counts, shrinkage):
    summary = estimates(noisy([[30, 0], [0, 1], [5, -60]], counts, noise=3), shrinkage=shrinkage)
    assert np.linalg.norm(summary.means, axis=1).max() <= 1 + 1e-6
    assert summary.shares.min() > 0
    assert summary.shares.sum() == pytest.approx(1)


def test_counts_are_shrunk_towards_equal_ones_by_what_rises_above_their_noise():
    near, far = (estimates(noisy(np.zeros((4, 1)), counts, noise=5)) for counts in ([30, 20, 25, 25], [90, 5, 5, 0]))
    assert np.allclose(near.shares, 0.25)
    assert 0.6 < far.shares[0] < 0.9
    assert estimates(noisy(np.zeros((1, 1)), [12], noise=5)).shares.tolist() == [1]


def test_signal_is_told_in_units_of_the_noise():
    assert noisy([[3, 4]], [5], noise=1).signal_to_noise == pytest.approx(np.sqrt(11.5))
    assert noisy([[0.1, 0.2]], [5], noise=1).signal_to_noise == 0
    assert noisy([[3, 4]], [5], noise=0).signal_to_noise is None
