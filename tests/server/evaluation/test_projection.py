import json

import numpy as np
import pytest

from server.documents.maps import TextMap
from server.evaluation.projection import Projection, evenly, synthetic_map


@pytest.fixture
def vectors():
    generator = np.random.default_rng(0)
    return (generator.normal(size=(60, 5)) * [5, 3, 1, 0.5, 0.1]).astype(np.float32)


def test_it_is_principal_component_analysis(vectors):
    from sklearn.decomposition import PCA

    ours, theirs = Projection.fit(vectors), PCA(2).fit(vectors)
    assert np.allclose(np.abs(ours.axes), np.abs(theirs.components_), atol=1e-4)
    assert ours.explained == pytest.approx(theirs.explained_variance_ratio_, abs=1e-4)
    assert np.allclose(np.abs(ours.place(vectors)), np.abs(theirs.transform(vectors)), atol=1e-3)
    assert (ours.axes[np.arange(2), np.abs(ours.axes).argmax(1)] > 0).all()


def test_other_texts_are_laid_on_the_axes_that_a_file_keeps(vectors):
    made = TextMap.from_json(json.loads(json.dumps(synthetic_map(vectors).to_json())))
    again = Projection.of(made).place(vectors)
    assert np.allclose(again, made.points, atol=1e-3)
    assert len(made.points) == 60


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_texts_span_no_plane(vectors, rows):
    assert synthetic_map(vectors[:rows]).to_json() == {"points": []}
    assert Projection.of(TextMap()) is None


def test_equal_texts_and_texts_on_a_line_span_no_plane(vectors):
    assert synthetic_map(np.tile(vectors[:1], (9, 1))) == TextMap()
    assert synthetic_map(np.arange(9, dtype=np.float32)[:, None] * vectors[:1]) == TextMap()


def test_evenly():
    assert evenly(range(10), 4) == [0, 2, 5, 7]
    assert evenly(range(3), 4) == [0, 1, 2]
    assert evenly([], 4) == []
