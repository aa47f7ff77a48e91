import numpy as np
import pytest

from common.errors import ConfigError
from simulations.federation.parties import deal_iid, dirichlet

LABELS = ["a"] * 300 + ["b"] * 100 + ["c"] * 7


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("parties", [1, 3, 10, 1000])
@pytest.mark.parametrize("alpha", [1e-8, 0.1, 1.0, 1e6])
def test_every_record_has_exactly_one_party(parties, alpha):
    parts = dirichlet(LABELS, parties, alpha, rng())
    assert len(parts) == parties
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(len(LABELS)))
    parts = deal_iid(len(LABELS), parties, rng())
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(len(LABELS)))


def test_iid_sizes_differ_by_at_most_one_and_records_are_shuffled():
    parts = deal_iid(11, 3, rng())
    assert sorted(map(len, parts)) == [3, 4, 4]
    # Labels come sorted: dealt unshuffled, one party of ten would hold exactly 30 of "a", with no spread.
    shares = [np.mean(part < 300) for seed in range(20) for part in deal_iid(407, 10, rng(seed))]
    assert np.std(shares) > 0.02


def share_of_first(alpha, classes=400):
    """First party's share of each class, over many classes of 100 records."""
    labels = [f"{number:03}" for number in range(classes) for _ in range(100)]
    first = dirichlet(labels, 4, alpha, rng(3))[0]
    return np.bincount(first // 100, minlength=classes) / 100


@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0])
def test_shares_have_the_moments_of_the_dirichlet_distribution(alpha):
    shares = share_of_first(alpha)
    variance = (1 / 4) * (3 / 4) / (4 * alpha + 1)
    # 400 classes: mean within 5 standard errors (false alarm below 1e-6); variance within a third, over 4 of its
    # standard errors at each alpha tried.
    assert abs(shares.mean() - 0.25) < 5 * np.sqrt(variance / 400)
    assert abs(shares.var() / variance - 1) < 1 / 3


def test_who_gets_which_record_of_a_class_is_random():
    first = dirichlet(["a"] * 400, 2, 100.0, rng())[0]
    assert np.ptp(first) > len(first)  # a run of neighbours would be one less; by chance with probability below 2^-300


def test_parties_may_be_empty():
    sizes = [len(part) for part in dirichlet(["a", "b"], 10, 1.0, rng())]
    assert sum(sizes) == 2
    assert sizes.count(0) >= 8
    assert [len(part) for part in dirichlet([], 3, 1.0, rng())] == [0, 0, 0]


def test_the_seed_decides():
    one, same, other = (dirichlet(LABELS, 3, 1.0, rng(seed)) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, same, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_values_out_of_range_are_refused():
    with pytest.raises(ConfigError, match="alpha"):
        dirichlet(LABELS, 3, 0.0, rng())
    with pytest.raises(ConfigError, match="parties"):
        dirichlet(LABELS, 0, 1.0, rng())
    with pytest.raises(ConfigError, match="parties"):
        deal_iid(3, 0, rng())
