import sys

import numpy as np
import pytest

from common.errors import ConfigError, DataError
from server.metrics.clusters import divergences


def groups(counts, seed=0):
    """So many vectors in each of four far apart places."""
    rng = np.random.default_rng(seed)
    places = np.repeat(np.eye(4), counts, axis=0)
    return (places + 0.001 * rng.normal(size=places.shape)).astype(np.float32)


def test_kl_and_total_variation_of_histograms_with_a_closed_form(monkeypatch):
    import mauve

    # Four buckets, so that k-means finds the four places whatever it starts from.
    arguments = {}
    real = mauve.compute_mauve
    monkeypatch.setattr(
        mauve, "compute_mauve", lambda *a, **k: arguments.update(k) or real(*a, **k | {"num_buckets": 4})
    )
    p, q = np.array([10, 10, 20, 0]), np.array([10, 10, 10, 10])
    distances = divergences(groups(p), groups(q, 1))
    smooth_p, smooth_q = (p + 0.5) / 42, (q + 0.5) / 42
    assert distances.clusters == 4
    assert distances.total_variation == pytest.approx(0.25)
    assert distances.kl == pytest.approx((smooth_p * np.log(smooth_p / smooth_q)).sum())
    assert (arguments["kmeans_num_redo"], arguments["kmeans_max_iter"]) == (5, 500)


def test_mauve_is_one_for_equal_sets_and_near_nothing_for_far_ones():
    a = groups([20, 20, 20, 0])
    same = divergences(a, a)
    assert (same.mauve, same.kl, same.total_variation) == pytest.approx((1, 0, 0), abs=1e-6)
    far = divergences(groups([40, 0, 0, 0]), groups([0, 40, 0, 0]))
    assert far.mauve < 0.05
    assert far.total_variation == 1
    assert divergences(a, groups([5, 5, 0, 30])) == divergences(a, groups([5, 5, 0, 30]))


A = groups([10, 10, 5, 5])


@pytest.mark.parametrize(
    ("ours", "theirs", "says"),
    [(A, A[:19], "20 rows"), (A, A * np.nan, "finite"), (np.ones((30, 4)), np.ones((30, 4)), "same")],
)
def test_what_cannot_be_clustered_is_refused(ours, theirs, says):
    with pytest.raises(DataError, match=says):
        divergences(ours, theirs)


def test_without_the_package_it_says_which(monkeypatch):
    monkeypatch.setitem(sys.modules, "mauve", None)
    ours = np.random.default_rng(0).normal(size=(30, 4))
    with pytest.raises(ConfigError, match=r"EXTRAS=\[mauve\]"):
        divergences(ours, ours + 1)
