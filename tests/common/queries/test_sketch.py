"""Features against the Gaussian kernel that they estimate."""

import numpy as np

from common.queries.sketch import features


def test_single_and_paired_features_average_to_the_kernel():
    rng = np.random.default_rng(2)
    count, bandwidth = 40_000, 1.5
    x, y = rng.standard_normal((2, 5)) / 3
    frequencies = rng.standard_normal((count, 5)) / bandwidth
    phases = rng.uniform(0, 2 * np.pi, count).astype(np.float32)
    kernel = np.exp(-((x - y) ** 2).sum() / bandwidth**2)
    for angles, times in ((phases, 1), (np.zeros(0, np.float32), 2)):
        of_x, of_y = (features((frequencies @ point)[None], angles)[0] for point in (x, y))
        # Products lie in [-2, 2]: 5 standard errors, a false alarm of 6e-7 over draws, and none for this one.
        assert abs(times * (of_x * of_y).mean() - kernel) < 5 * 2 / count**0.5


def test_cosines_come_before_sines():
    angles = np.array([[0.0, 1.0]]) / np.sqrt(2)
    np.testing.assert_allclose(
        features(angles, np.zeros(0, np.float32)), [[1, np.cos(1), 0, np.sin(1)]], rtol=0, atol=1e-15
    )
    single = features(angles, np.array([0, 0.5], np.float32))
    np.testing.assert_allclose(single, np.sqrt(2) * np.cos([[0, 1.5]]), rtol=0, atol=1e-15)


def test_a_feature_is_the_same_wherever_it_stands():
    rng = np.random.default_rng(3)
    angles = np.concatenate([rng.uniform(-(10**e), 10**e, 1000) for e in range(-3, 9)])[None]
    paired = features(angles, np.zeros(0, np.float32))[0].reshape(2, -1)
    for place in range(0, angles.size, 37):
        assert features(angles[:, place : place + 1], np.zeros(0, np.float32))[0].tolist() == paired[:, place].tolist()
    for start in range(1, 9):
        shifted = features(angles[:, start:].copy(), np.zeros(0, np.float32))[0].reshape(2, -1)
        assert np.array_equal(shifted, paired[:, start:])
