"""Pure noise stays pure, whatever a delta would allow."""

import math

import pytest

from common.errors import ConfigError
from common.plan.guarantee import epsilon_pure, verify
from common.plan.planned import PlannedQuery
from common.queries.histograms import LabelHistogramSpec, VocabularySpec
from common.queries.sketch import SketchSpec
from server.planning.calibration import calibrate
from tests.support.plans import plan_of_one

COUNTS = VocabularySpec(first=10)
SKETCH = SketchSpec(labels=2, features=50, paired=False, grid=16)


def _queries(pure=True, sketch="laplace", pure_sketch=True):
    return (
        PlannedQuery(name="counts", spec=COUNTS, mechanism="laplace", share=0.25, pure=pure),
        PlannedQuery(name="sketch", spec=SKETCH, mechanism=sketch, share=0.75, pure=pure_sketch),
    )


@pytest.mark.parametrize("attempts", [1, 3])
def test_each_pure_query_has_the_noise_of_its_share_and_all_add_up_to_epsilon(attempts):
    calibrated = calibrate(plan_of_one(*_queries(), max_attempts=attempts), 4.0)
    counts, sketch = calibrated.queries
    assert counts.scale == pytest.approx(attempts * 10 / 1.0, rel=1e-6)
    assert sketch.scale == pytest.approx(attempts * 50 * math.floor(math.sqrt(2) * 16) / 3.0, rel=1e-6)
    assert epsilon_pure(calibrated) == pytest.approx(4.0, rel=1e-6)
    assert verify(calibrated) <= 4.0


def test_without_it_a_delta_buys_less_noise_at_several_times_the_pure_epsilon():
    calibrated = calibrate(plan_of_one(*_queries(pure=False, pure_sketch=False)), 4.0)
    assert epsilon_pure(calibrated) > 6.0
    assert verify(calibrated) <= 4.0


def test_beside_pure_queries_the_others_take_what_they_leave():
    calibrated = calibrate(plan_of_one(*_queries(pure_sketch=False)), 4.0)
    alone = calibrate(plan_of_one(*_queries()), 4.0)
    assert calibrated.queries[0] == alone.queries[0]
    assert calibrated.queries[1].scale < alone.queries[1].scale
    assert 4.0 - 1e-3 < verify(calibrated) <= 4.0


def test_gaussian_noise_and_none_have_no_pure_epsilon():
    gaussian = calibrate(plan_of_one(*_queries(pure=False, sketch="gaussian", pure_sketch=False)), 4.0)
    assert epsilon_pure(gaussian) == math.inf
    assert epsilon_pure(plan_of_one(*_queries())) == math.inf


@pytest.mark.parametrize("wrong", [{"mechanism": "gaussian"}, {"rate": 0.5}, {"pure": 1}])
def test_what_cannot_be_pure_is_refused(wrong):
    with pytest.raises(ConfigError, match="pure noise of q"):
        PlannedQuery(
            **{"name": "q", "spec": LabelHistogramSpec(labels=2), "mechanism": "laplace", "pure": True} | wrong
        )
