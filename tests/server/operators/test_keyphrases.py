"""Densities against their definition and theorem A.1, draws against the densities, vocabularies out of files."""

import math

import numpy as np
import pytest

from common.errors import ConfigError, DataError
from common.queries.sketch import SketchSpec, features
from server.operators import keyphrases
from server.operators.keyphrases import Density
from tests.support.asking import random_units

DIM = 6


def made(rng, points, *, paired, prefix=0, rows=64, bandwidth=0.7, labels=2):
    """A sketch without noise of (labels, records, blocks * dim) points, and its specification."""
    spec = SketchSpec(labels=labels, features=rows * (2 if paired else 1), paired=paired, prefix=prefix, first=16)
    frequencies, phases = keyphrases.draw_frequencies(spec, DIM, bandwidth, rng)
    sums = [
        features(points_of_label.astype(np.float64) @ frequencies.T.astype(np.float64), phases).sum(axis=0)
        for points_of_label in points
    ]
    return Density.of(spec, frequencies, phases, np.concatenate(sums)), frequencies, phases


@pytest.mark.parametrize("paired", [True, False])
def test_a_density_is_the_mean_over_features_of_sketch_times_feature(paired):
    rng = np.random.default_rng(0)
    points = random_units(rng, 10, DIM).reshape(2, 5, DIM)
    density, frequencies, phases = made(rng, points, paired=paired)
    targets = random_units(rng, 7, DIM)
    of = [features(part.astype(np.float64) @ frequencies.T, phases) for part in (points[0], points[1], targets)]
    expected = [sums.sum(axis=0) @ of[2].T * (2 if paired else 1) / of[2].shape[1] for sums in of[:2]]
    np.testing.assert_allclose(density.at(targets), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("paired", [True, False])
def test_extensions_have_the_density_of_the_phrases_side_by_side(paired):
    rng = np.random.default_rng(1)
    points = random_units(rng, 2 * 5 * 4, DIM).reshape(2, 5, 4 * DIM)
    density, _, _ = made(rng, points, paired=paired, prefix=4)
    phrases = random_units(rng, 9, DIM)
    for place in range(4):
        before = phrases[rng.integers(0, 9, (3, place))].reshape(3, place * DIM)
        scores = density.of_extensions(1, before, density.waves(phrases, place))
        for row in range(3):
            whole = np.concatenate([np.tile(before[row], (9, 1)), phrases], axis=1)
            np.testing.assert_allclose(scores[row], density.at(whole)[1], rtol=0, atol=1e-4)


@pytest.mark.parametrize("paired", [True, False])
def test_a_zero_padded_query_estimates_the_density_of_the_prefix(paired):
    """Theorem A.1: with an error larger by the factor e^(squared norm of the blocks behind the prefix) and no more."""
    rng = np.random.default_rng(2)
    rows, blocks, records, bandwidth = 20_000, 4, 30, 0.9
    points = random_units(rng, records * blocks, DIM).reshape(1, records, blocks * DIM)
    density, _, _ = made(rng, points, paired=paired, prefix=blocks, rows=rows, bandwidth=bandwidth, labels=1)
    for j in range(1, blocks + 1):
        near, far = points[0, 3, : j * DIM], random_units(rng, j, DIM).reshape(-1)
        for target in (near, far):
            # Each block has squared norm 1/blocks after matching the bandwidth.
            distances = ((points[0, :, : j * DIM] - target) ** 2).sum(axis=1) / blocks
            exact = np.exp(-distances / bandwidth**2).mean()
            behind = math.exp((blocks - j) / blocks / bandwidth**2)
            got = density.at(target[None])[0, 0] / records * behind
            # A row's part is within [-2, 2], 5 standard errors: a false alarm of 6e-7 over draws, none for these.
            assert abs(got - exact) < 5 * behind * 2 / math.sqrt(rows)
            # Without the factor it would be another value.
            assert j > 1 or abs(got / behind - exact) > 0.4 * exact


def test_independent_phrases_come_in_proportion_to_positive_densities():
    densities = np.array([3, -1, 0, 1, -5, 6], dtype=np.float32)
    sequences = keyphrases.draw_independently(densities, 4000, 10, np.random.default_rng(4))
    assert (sequences.phrases.shape, sequences.uniform) == ((4000, 10), 0)
    shares = np.bincount(sequences.phrases.ravel(), minlength=6) / 40_000
    # 5 standard errors of a share: a false alarm of 3e-6 over draws, none for these.
    np.testing.assert_allclose(shares, np.array([3, 0, 0, 1, 0, 6]) / 10, rtol=0, atol=5 * 0.5 / 200)
    assert not shares[[1, 2, 4]].any()


def test_iterative_phrases_come_in_proportion_to_the_density_of_the_whole_prefix():
    rng = np.random.default_rng(5)
    phrases = random_units(rng, 4, DIM)
    pairs = np.concatenate([phrases[[0, 1, 1]], phrases[[2, 3, 3]]], axis=1)[None]
    density, _, _ = made(rng, pairs, paired=True, prefix=2, rows=500, bandwidth=0.4, labels=1)
    count = 8000
    sequences = keyphrases.iterative([density, density], 0, phrases, count, rng)
    assert sequences.phrases.shape == (count, 2)
    first = np.maximum(density.at(phrases)[0], 0)
    shares = np.bincount(sequences.phrases[:, 0], minlength=4) / count
    limit = 5 * 0.5 / math.sqrt(count)  # 5 standard errors: a false alarm of 5e-6 over draws, none for these
    np.testing.assert_allclose(shares, first / first.sum(), rtol=0, atol=limit)
    for start in (0, 1):
        whole = np.concatenate([np.tile(phrases[start], (4, 1)), phrases], axis=1)
        second = np.maximum(density.at(whole)[0], 0)
        followers = sequences.phrases[sequences.phrases[:, 0] == start, 1]
        frequencies = np.bincount(followers, minlength=4) / len(followers)
        np.testing.assert_allclose(frequencies, second / second.sum(), rtol=0, atol=5 * 0.5 / math.sqrt(len(followers)))
        assert frequencies.argmax() == start + 2


def test_where_no_density_is_above_zero_draws_are_uniform_and_counted():
    rng = np.random.default_rng(6)
    sequences = keyphrases.draw_independently(-np.ones(4, dtype=np.float32), 1000, 4, rng)
    assert sequences.uniform == 4000
    # 5 standard errors: a false alarm of 2e-6 over draws, none for these.
    np.testing.assert_allclose(np.bincount(sequences.phrases.ravel()) / 4000, 0.25, atol=5 * 0.433 / 63)
    density, _, _ = made(rng, np.zeros((1, 1, DIM), np.float32), paired=True, labels=1)
    nothing = Density(
        frequencies=density.frequencies, phases=density.phases, cosines=0 * density.cosines, sines=0 * density.sines
    )
    assert keyphrases.iterative([nothing], 0, random_units(rng, 3, DIM), 50, rng).uniform == 50


def test_terms_of_a_file_are_taken_once_as_first_spelled(tmp_path):
    file = tmp_path / "terms.txt"
    file.write_text("Chest  Pain\nfever\n--\nFEVER\nchest-pain\n\nCOVID-19\n")
    assert keyphrases.public_vocabulary(str(file), at_least=1) == ("Chest  Pain", "fever", "COVID-19")
    file.write_text("fever\n" + "a " * 9)
    with pytest.raises(ConfigError, match="8 words"):
        keyphrases.public_vocabulary(str(file), at_least=1)
    file.write_text("--\n_\n")
    with pytest.raises(ConfigError, match=r"method\.vocabulary"):
        keyphrases.public_vocabulary(str(file), at_least=1)
    file.write_text("\n\n")
    with pytest.raises(DataError, match="no data"):
        keyphrases.public_vocabulary(str(file), at_least=1)
