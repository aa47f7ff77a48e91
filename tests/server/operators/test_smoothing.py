import numpy as np
import pytest

from server.operators.smoothing import smooth_votes
from tests.support.asking import unit

DIMENSIONS = 24


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
        assert error(smooth_votes(noised, vectors, labels, noise=noise), votes) < error(noised, votes)


@pytest.mark.parametrize("unexplained", [0.0, 2.0])
@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_penalty_is_about_as_good_as_the_best_in_hindsight(noise, unexplained):
    """Within 40% of the one penalty that is best for all 20 draws, whatever else the votes depend on."""
    ours, best = 0.0, np.zeros(25)
    for seed in range(20):
        votes, vectors, labels, rng = signal(seed, labels=1)
        noised = votes + rng.normal(0, unexplained, len(votes)) + rng.normal(0, noise, len(votes))
        centred, level = vectors - vectors.mean(axis=0), noised.mean()
        ours += error(smooth_votes(noised, vectors, labels, noise=noise), votes)
        for at, penalty in enumerate(2.0 ** np.arange(-12, 13)):
            inverse = np.linalg.inv(centred.T @ centred + penalty * np.eye(DIMENSIONS))
            best[at] += error(level + centred @ inverse @ centred.T @ (noised - level), votes)
    assert ours < 1.4 * best.min()


@pytest.mark.parametrize(("labels", "like"), [(1, 0.7), (10, 0.99)])
def test_where_there_is_noise_alone_the_order_is_about_that_of_the_noise(labels, like):
    """Else the best of a label would be one corner of it, at random: the more labels, the surer there is no signal."""
    correlations = []
    for seed in range(20):
        _, vectors, numbers, rng = signal(seed, labels=labels)
        noise = rng.normal(0, 3, len(numbers))
        correlations.append(np.corrcoef(smooth_votes(noise, vectors, numbers, noise=3.0), noise)[0, 1])
    assert np.mean(correlations) > like


def test_without_noise_the_scores_stay():
    votes, vectors, labels, _ = signal(1)
    assert np.array_equal(smooth_votes(votes, vectors, labels, noise=0.0), votes)


def test_kinds_of_votes_are_smoothed_by_themselves_and_labels_share_a_penalty_alone():
    votes, vectors, labels, rng = signal(4)
    both = np.stack([votes, rng.normal(4, 1, len(votes))])
    whole = smooth_votes(both, vectors, labels, noise=0.2)
    for kind in (0, 1):
        assert np.array_equal(whole[kind], smooth_votes(both[kind], vectors, labels, noise=0.2))
    for label in (0, 1):
        members = labels == label
        alone = smooth_votes(votes[members], vectors[members], labels[members], noise=0.2)
        assert np.abs(whole[0][members] - alone).max() < 0.02


def test_unit_and_order_do_not_matter():
    votes, vectors, labels, rng = signal(5)
    predicted = smooth_votes(votes, vectors, labels, noise=0.5)
    assert np.allclose(smooth_votes(100 * votes, vectors, labels, noise=50), 100 * predicted)
    order = rng.permutation(len(votes))
    assert np.allclose(smooth_votes(votes[order], vectors[order], labels[order], noise=0.5), predicted[order])


@pytest.mark.parametrize(
    ("scores", "same", "expected"),
    [
        ([3.0], False, [3.0]),
        ([1.0, 5.0, 3.0], True, [1.0, 5.0, 3.0]),
        ([0.0, 0.0, 0.0], False, [0.0, 0.0, 0.0]),
        ([2.0, 2.0], False, [2.0, 2.0]),
        ([], False, []),
    ],
    ids=["one candidate", "equal vectors", "all zero", "all equal", "none"],
)
def test_scores_stay_where_there_is_nothing_to_smooth_by(scores, same, expected):
    vectors = unit(np.random.default_rng(0).normal(size=(len(scores), 4)))
    vectors = vectors[:1].repeat(len(scores), axis=0) if same else vectors
    predicted = smooth_votes(np.array(scores), vectors, np.zeros(len(scores), dtype=np.int32), noise=2.0)
    assert predicted == pytest.approx(expected)


def test_a_mean_below_zero_is_noise_and_the_order_stays():
    votes, vectors, labels, _ = signal(7, labels=1)
    above, below = (smooth_votes(votes - level, vectors, labels, noise=0.5) for level in (0.0, 9.0))
    assert below.mean() == pytest.approx(0, abs=1e-9)
    assert np.array_equal(np.argsort(above), np.argsort(below))
