import json

import numpy as np
import pytest

from server.documents.maps import TextMap
from server.evaluation.projection import evenly, place_on_map, synthetic_map

VECTORS = (np.random.default_rng(0).normal(size=(60, 5)) * [5, 3, 1, 0.5, 0.1]).astype(np.float32)


def test_axes_are_those_of_a_singular_value_decomposition():
    made, centred = synthetic_map(VECTORS), VECTORS - VECTORS.mean(axis=0)
    _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    assert np.allclose(np.abs(made.axes), np.abs(axes[:2]), atol=1e-4)
    assert made.explained == pytest.approx(sizes[:2] ** 2 / (sizes**2).sum(), abs=1e-4)
    assert np.allclose(np.abs(made.points), np.abs(centred @ axes[:2].T), atol=1e-3)
    assert (np.array(made.axes)[np.arange(2), np.abs(made.axes).argmax(1)] > 0).all()


def test_other_texts_are_laid_on_the_axes_that_a_file_keeps():
    made = TextMap.from_json(json.loads(json.dumps(synthetic_map(VECTORS).to_json())))
    assert np.allclose(place_on_map(made, VECTORS), made.points, atol=1e-3)


@pytest.mark.parametrize(
    "vectors",
    [VECTORS[:0], VECTORS[:2], np.tile(VECTORS[:1], (9, 1)), np.arange(9, dtype=np.float32)[:, None] * VECTORS[:1]],
    ids=["none", "two", "equal", "line"],
)
def test_vectors_that_span_no_plane_have_no_map(vectors):
    assert synthetic_map(vectors) == TextMap()


@pytest.mark.parametrize(("items", "taken"), [(range(10), [0, 2, 5, 7]), (range(3), [0, 1, 2]), ([], [])])
def test_evenly_takes_at_most_so_many_in_order(items, taken):
    assert evenly(items, 4) == taken
