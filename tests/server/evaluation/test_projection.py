import json

import numpy as np
import pytest

from server.documents.maps import TextMap
from server.evaluation.projection import evenly, place_on_map, synthetic_map


@pytest.fixture
def vectors():
    generator = np.random.default_rng(0)
    return (generator.normal(size=(60, 5)) * [5, 3, 1, 0.5, 0.1]).astype(np.float32)


def test_the_axes_are_those_of_a_singular_value_decomposition(vectors):
    made, centred = synthetic_map(vectors), vectors - vectors.mean(axis=0)
    _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    assert np.allclose(np.abs(made.axes), np.abs(axes[:2]), atol=1e-4)
    assert made.explained == pytest.approx(sizes[:2] ** 2 / (sizes**2).sum(), abs=1e-4)
    assert np.allclose(np.abs(made.points), np.abs(centred @ axes[:2].T), atol=1e-3)
    assert (np.array(made.axes)[np.arange(2), np.abs(made.axes).argmax(1)] > 0).all()


def test_other_texts_are_laid_on_the_axes_that_a_file_keeps(vectors):
    made = TextMap.from_json(json.loads(json.dumps(synthetic_map(vectors).to_json())))
    assert np.allclose(place_on_map(made, vectors), made.points, atol=1e-3)
    assert len(made.points) == 60


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_texts_span_no_plane(vectors, rows):
    assert synthetic_map(vectors[:rows]).to_json() == {"points": []}


def test_equal_texts_and_texts_on_a_line_span_no_plane(vectors):
    assert synthetic_map(np.tile(vectors[:1], (9, 1))) == TextMap()
    assert synthetic_map(np.arange(9, dtype=np.float32)[:, None] * vectors[:1]) == TextMap()


def test_evenly():
    assert evenly(range(10), 4) == [0, 2, 5, 7]
    assert evenly(range(3), 4) == [0, 1, 2]
    assert evenly([], 4) == []
