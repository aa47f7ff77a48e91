"""Distances from real texts, in a task without labels: of the texts, of those without the hospitals, of real ones."""

import json
from dataclasses import replace

import numpy as np
import pytest

from common.domain import UNLABELLED, Record
from server.documents.codec import strict
from server.documents.metrics import Figure, Metrics
from server.domain import Candidate
from server.evaluation.figures import WITHOUT_LABELS, Measured
from server.evaluation.nearness import nearness
from server.evaluation.of_texts import text_groups
from server.evaluation.small_model import metrics as small_model
from server.evaluation.zero_shot import compare_with_zero_shot
from server.report.quality import read_quality
from tests.support import measured_texts
from tests.support.measured_texts import measured_parts

HELD_OUT = [Record(record.text, UNLABELLED) for record in measured_texts.records(104, 60)]
NEAR = [Candidate(text=record.text, label=UNLABELLED, model="m", round=0) for record in HELD_OUT[1::2]]
FAR = [Candidate(text=f"zinc {i} ytterbium {i % 3}", label=UNLABELLED, model="m", round=0) for i in range(25)]


def measured(candidates, test=tuple(HELD_OUT), **changes):
    return Measured(**measured_parts(candidates=candidates, test=list(test), **changes))


def read(candidates, zero_shot, **changes):
    groups = nearness(measured(candidates, **changes), zero_shot)
    metrics = Metrics(content=json.loads(json.dumps(strict(groups))))
    assert {group.title for group in metrics.groups} == {"nearness"}
    return read_quality(metrics)


def test_nearer_texts_are_a_clear_gain_and_farther_ones_a_loss():
    better, worse = read(NEAR, FAR), read(FAR, NEAR)
    assert better.trained_on == worse.trained_on == 25  # the fewest of all three, half of the held-out texts included
    assert better.synthetic < better.zero_shot
    assert better.gain.value == pytest.approx(better.zero_shot - better.synthetic)
    assert better.gain.clear
    assert worse.gain.loss
    assert better.real < better.zero_shot
    low, high = better.interval
    assert low < better.synthetic < high


def test_the_same_texts_are_no_gain():
    gain = read(NEAR, NEAR).gain
    assert gain.value == 0
    assert not gain.clear
    assert not gain.loss


def test_without_zero_shot_texts_there_is_no_gain():
    near = read(NEAR, [])
    assert near.zero_shot is None
    assert near.gain is None
    assert near.real is not None


@pytest.mark.parametrize("held_out", [HELD_OUT[:1], HELD_OUT[:3]])
def test_too_few_held_out_texts_are_a_reason(held_out):
    (group,) = nearness(measured(NEAR, held_out), FAR).values()
    assert group["fid"].value is None
    assert "FID" in group["fid"].reason
    assert read_quality(Metrics(content={"nearness": group})).synthetic is None


def test_few_texts_have_no_interval():
    near = read(NEAR[:6], FAR)
    assert near.synthetic is not None
    assert near.interval is near.gain is None


def test_with_labels_or_without_texts_nothing_is_measured():
    assert nearness(Measured(**measured_parts()), FAR) == {}
    assert nearness(measured([]), FAR) == nearness(measured(NEAR, []), FAR) == {}


def test_what_needs_labels_has_its_reason_and_the_rest_is_measured():
    settings = {"metrics": ("utility", "utility_encoder", "fidelity", "diversity")}
    groups = text_groups(measured(NEAR, settings=settings))
    for name in ("utility", "utility_encoder"):
        assert groups[name] == Figure(reason=WITHOUT_LABELS)
    assert all(np.isfinite(groups["fidelity"][name].value) for name in ("fid", "mauve", "precision", "recall"))
    assert groups["fidelity"]["length_distance"].value >= 0
    assert groups["diversity"]["distinct_1"].value > 0
    assert compare_with_zero_shot(measured(NEAR), FAR) == {}
    parts = measured_parts()
    assert small_model(NEAR, HELD_OUT, parts["evaluation"], parts["encoder"]) == {"test_records": len(HELD_OUT)}


def test_the_texts_drawn_follow_the_experiment_seed():
    first, again, other = (
        nearness(replace(measured(NEAR), experiment_seed=seed), FAR)["nearness"]["fid"].value for seed in (1, 1, 2)
    )
    assert first == again != other
