import numpy as np
import pytest

from server.operators.smoothing import smoothed

DIMENSIONS = 24


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def signal(seed, *, size=200, labels=2):
    """Candidates whose votes are linear in their embeddings, with mean 4 and variance 1."""
    rng = np.random.default_rng(seed)
    vectors = unit(rng.normal(size=(size, DIMENSIONS)) * 0.8 ** np.arange(DIMENSIONS))
    numbers = np.arange(size) % labels
    votes = vectors @ rng.normal(size=DIMENSIONS)
    return 4 + (votes - votes.mean()) / votes.std(), vectors, numbers, rng


def error(predicted, votes):
    return float(np.mean((predicted - votes) ** 2))


@pytest.mark.parametrize("noise", [0.1, 1.0, 4.0])
def test_is_nearer_to_the_votes_than_the_noised_votes_are(noise):
    """False alarm 1e-6: what is no better than the noised votes is nearer in all 20 with probability 2^-20."""
    for seed in range(20):
        votes, vectors, labels, rng = signal(seed)
        noised = votes + rng.normal(0, noise, len(votes))
        assert error(smoothed(noised, vectors, labels, noise=noise), votes) < error(noised, votes)


@pytest.mark.parametrize("unexplained", [0.0, 2.0])
@pytest.mark.parametrize("noise", [0.3, 1.0, 4.0])
def test_penalty_is_about_as_good_as_the_best_in_hindsight(noise, unexplained):
    """Within 40 % of the one penalty that is best for all 20 draws, whatever else the votes depend on."""
    ours, best = 0.0, np.zeros(25)
    for seed in range(20):
        votes, vectors, labels, rng = signal(seed, labels=1)
        noised = votes + rng.normal(0, unexplained, len(votes)) + rng.normal(0, noise, len(votes))
        centred, level = vectors - vectors.mean(axis=0), noised.mean()
        ours += error(smoothed(noised, vectors, labels, noise=noise), votes)
        for at, penalty in enumerate(2.0 ** np.arange(-12, 13)):
            inverse = np.linalg.inv(centred.T @ centred + penalty * np.eye(DIMENSIONS))
            best[at] += error(level + centred @ inverse @ centred.T @ (noised - level), votes)
    assert ours < 1.4 * best.min()


def test_noise_alone_is_left_out():
    """Mean squares of 200 predictions; without smoothing they are 1."""
    rng = np.random.default_rng(3)
    vectors, labels = signal(0)[1:3]
    noise = [smoothed(2 + rng.normal(size=200), vectors, labels, noise=1.0) - 2 for _ in range(20)]
    assert np.mean(np.square(noise)) < 0.05


def test_without_noise_the_scores_stay():
    votes, vectors, labels, _ = signal(1)
    assert np.array_equal(smoothed(votes, vectors, labels, noise=0.0), votes)


def test_little_noise_changes_little_where_embeddings_explain_the_votes():
    votes, vectors, labels, rng = signal(2)
    predicted = smoothed(votes + rng.normal(0, 0.01, len(votes)), vectors, labels, noise=0.01)
    assert np.abs(predicted - votes).max() < 0.05


def test_labels_and_kinds_of_votes_are_smoothed_by_themselves():
    votes, vectors, labels, rng = signal(4)
    both = np.stack([votes, rng.normal(4, 1, len(votes))])
    whole = smoothed(both, vectors, labels, noise=0.5)
    for kind, label in ((0, 0), (0, 1), (1, 0), (1, 1)):
        members = labels == label
        alone = smoothed(both[kind][members], vectors[members], labels[members], noise=0.5)
        assert np.allclose(whole[kind][members], alone)


def test_unit_and_order_do_not_matter():
    votes, vectors, labels, rng = signal(5)
    predicted = smoothed(votes, vectors, labels, noise=0.5)
    assert np.allclose(smoothed(100 * votes, vectors, labels, noise=50), 100 * predicted)
    order = rng.permutation(len(votes))
    assert np.allclose(smoothed(votes[order], vectors[order], labels[order], noise=0.5), predicted[order])


def test_more_candidates_than_dimensions_and_fewer():
    for size in (3, DIMENSIONS, 5 * DIMENSIONS):
        votes, vectors, labels, _ = signal(6, size=size, labels=1)
        predicted = smoothed(votes, vectors, labels, noise=0.5)
        assert np.isfinite(predicted).all()
        assert predicted.mean() == pytest.approx(votes.mean())
        assert predicted.std() < votes.std()


@pytest.mark.parametrize(
    ("scores", "same", "expected"),
    [
        ([3.0], False, [3.0]),
        ([-3.0], False, [0.0]),
        ([1.0, 5.0, 3.0], True, [3.0, 3.0, 3.0]),
        ([0.0, 0.0, 0.0], False, [0.0, 0.0, 0.0]),
        ([2.0, 2.0], False, [2.0, 2.0]),
        ([], False, []),
    ],
    ids=["one candidate", "one below zero", "equal vectors", "all zero", "all equal", "none"],
)
def test_where_there_is_nothing_to_compare(scores, same, expected):
    vectors = unit(np.random.default_rng(0).normal(size=(len(scores), 4)))
    vectors = vectors[:1].repeat(len(scores), axis=0) if same else vectors
    predicted = smoothed(np.array(scores), vectors, np.zeros(len(scores), dtype=np.int32), noise=2.0)
    assert predicted == pytest.approx(expected)


def test_a_mean_below_zero_is_noise_and_the_order_stays():
    votes, vectors, labels, _ = signal(7, labels=1)
    above, below = (smoothed(votes - level, vectors, labels, noise=0.5) for level in (0.0, 9.0))
    assert below.mean() == pytest.approx(0, abs=1e-9)
    assert np.array_equal(np.argsort(above), np.argsort(below))


def test_candidates_are_told_apart_however_little_there_is_to_see():
    """Else a choice by votes would be one by position."""
    rng = np.random.default_rng(8)
    _, vectors, labels, _ = signal(8)
    assert len(np.unique(smoothed(rng.normal(0, 50, 200), vectors, labels, noise=50.0))) == 200
