"""Distances from real texts, in a task without labels: of the texts, of those without the hospitals, of real ones."""

from dataclasses import replace

import numpy as np
import pytest

from common.domain import UNLABELLED, Record
from server.documents.metrics import Figure
from server.domain import Candidate
from server.evaluation.figures import WITHOUT_LABELS, Measured
from server.evaluation.nearness import nearness
from server.evaluation.of_texts import text_groups
from server.evaluation.small_model import metrics as small_model
from server.evaluation.zero_shot import compare_with_zero_shot
from server.report.quality import read_quality
from tests.support import measured_texts
from tests.support.measured_texts import as_read, measured_parts

HELD_OUT = [Record(record.text, UNLABELLED) for record in measured_texts.records(104, 60)]
NEAR = [Candidate(text=record.text, label=UNLABELLED, model="m", round=0) for record in HELD_OUT[1::2]]
FAR = [Candidate(text=f"zinc {i} ytterbium {i % 3}", label=UNLABELLED, model="m", round=0) for i in range(25)]


def measured(candidates, test=tuple(HELD_OUT), **changes):
    return Measured(**measured_parts(candidates=candidates, test=list(test), **changes))


def read(candidates, zero_shot, test=tuple(HELD_OUT)):
    groups = nearness(measured(candidates, test), zero_shot)
    return read_quality(as_read(groups))


def test_nearer_texts_are_a_clear_gain_farther_ones_a_loss_and_the_same_ones_neither():
    better, worse, same = read(NEAR, FAR), read(FAR, NEAR), read(NEAR, NEAR)
    assert better.trained_on == worse.trained_on == 25  # the fewest of all three, half of the held-out texts included
    assert better.gain.value == pytest.approx(better.zero_shot - better.synthetic)
    assert (better.gain.clear, worse.gain.loss) == (True, True)
    assert better.real < better.zero_shot
    assert better.interval[0] < better.synthetic < better.interval[1]
    assert (same.gain.value, same.gain.clear, same.gain.loss) == (0, False, False)


def test_distances_without_zero_shot_texts_or_of_few_texts_have_no_gain():
    near, few = read(NEAR, []), read(NEAR[:6], FAR)
    assert near.zero_shot is near.gain is few.interval is few.gain is None
    assert None not in (near.real, few.synthetic)


@pytest.mark.parametrize("held_out", [HELD_OUT[:1], HELD_OUT[:3]])
def test_distance_from_too_few_held_out_texts_is_a_reason(held_out):
    (group,) = nearness(measured(NEAR, held_out), FAR).values()
    assert group["fid"].value is None
    assert group["fid"].reason
    assert read(NEAR, FAR, held_out).synthetic is None


def test_texts_with_labels_or_no_texts_have_no_distance():
    assert nearness(Measured(**measured_parts()), FAR) == {}
    assert nearness(measured([]), FAR) == nearness(measured(NEAR, []), FAR) == {}


def test_figures_that_need_labels_have_their_reason_and_the_rest_is_measured():
    settings = {"metrics": ("utility", "utility_encoder", "fidelity", "diversity")}
    groups = text_groups(measured(NEAR, settings=settings))
    assert groups["utility"] == groups["utility_encoder"] == Figure(reason=WITHOUT_LABELS)
    assert all(np.isfinite(groups["fidelity"][name].value) for name in ("fid", "mauve", "precision", "length_distance"))
    assert groups["diversity"]["distinct_1"].value > 0
    assert compare_with_zero_shot(measured(NEAR), FAR) == {}
    parts = measured_parts()
    assert small_model(NEAR, HELD_OUT, parts["evaluation"], parts["encoder"]) == {"test_records": len(HELD_OUT)}


def test_texts_drawn_follow_the_experiment_seed():
    first, again, other = (
        nearness(replace(measured(NEAR), experiment_seed=seed), FAR)["nearness"]["fid"].value for seed in (1, 1, 2)
    )
    assert first == again != other
