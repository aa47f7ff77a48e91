import dataclasses
import math

import numpy as np
import pytest

from common.errors import ConfigError, PlanError
from common.privacy import mechanisms
from common.privacy.mechanisms import UNIT
from common.privacy.sensitivity import Sensitivity
from common.queries import closed_set
from common.queries.class_sums import ClassSumsSpec
from common.queries.closed_set import KINDS, spec_from_dict, spec_to_dict
from common.queries.correct_count import CorrectCountSpec
from common.queries.histograms import LabelHistogramSpec, LengthHistogramSpec, VocabularySpec
from common.queries.label_sets import LabelSetsSpec
from common.queries.length_range import LengthRangeSpec
from common.queries.questionnaire import QuestionnaireSpec
from common.queries.questions import QUESTIONS
from common.queries.section_order import SectionOrderSpec
from common.queries.seed_choice import SeedChoiceSpec
from common.queries.self_similarity import SelfSimilaritySpec
from common.queries.sketch import SketchSpec
from common.queries.texts import AbstractedSeedsSpec, FineTunedSpec, RewrittenSpec
from common.queries.votes import MOST_VOTES, VotesSpec

_ALL = [
    VotesSpec(top=8, furthest=False, fine=3, max_records=2),
    LabelHistogramSpec(labels=4, max_records=2),
    LabelSetsSpec(labels=4, labels_per_record=3, max_records=2),
    SectionOrderSpec(labels=4, labels_per_record=3, max_records=2),
    LengthHistogramSpec(bins=7, max_records=2),
    VocabularySpec(first=10, max_records=2),
    SketchSpec(labels=2, features=100, paired=False, first=5, prefix=4, grid=16, max_records=2),
    ClassSumsSpec(labels=3, directions=8, count=50, grid=100, max_records=2),
    QuestionnaireSpec(
        labels=3, directions=8, count=50, grid=100, max_records=2, first=9, term=5, **{q.name: 7 for q in QUESTIONS}
    ),
    SelfSimilaritySpec(buckets=100, grid=16, max_records=2),
    CorrectCountSpec(max_records=2),
    LengthRangeSpec(cap=1000, max_records=2),
    SeedChoiceSpec(choices=100, max_records=2),
    SeedChoiceSpec(choices=100, nearest=5),
    AbstractedSeedsSpec(choices=100, longest=99, candidates=7, max_records=2),
    FineTunedSpec(
        texts=100, longest=99, steps=7, learning_rate=0.5, temperature=0.7, lora=4, max_tokens=9, max_records=2
    ),
    RewrittenSpec(texts=100, longest=99, rounds=7, max_records=2),
]


@pytest.mark.parametrize("spec", [spec for spec in _ALL if hasattr(spec, "labels")], ids=lambda spec: spec.kind)
def test_a_specification_with_labels_has_the_plans_number(spec):
    spec.check("q", spec.labels)
    with pytest.raises(PlanError, match="labels of q"):
        spec.check("q", spec.labels + 1)


@pytest.mark.parametrize(
    ("spec", "l1", "l2"),
    [
        ({"top": 8}, 4 - 2**-6, math.sqrt(8 / 3 * (1 - 4.0**-8))),
        ({"top": 8, "furthest": False}, 2 - 2**-7, 1.154691),
        ({"top": 8, "fine": 5}, 4 - 2**-6, math.sqrt(8 / 3 * (1 - 4.0**-8))),
        ({"top": 1, "furthest": False}, 1, 1),
        ({"top": 1}, 2, math.sqrt(2)),
        ({"top": 3, "max_records": 8}, 8 * 3.5, 8 * math.sqrt(8 / 3 * (1 - 4.0**-3))),
    ],
)
def test_sensitivities_of_votes_are_the_derived_ones(spec, l1, l2):
    votes = VotesSpec(**spec)
    assert votes.sensitivity.l1 / votes.grid == pytest.approx(l1, rel=1e-12)
    assert votes.sensitivity.l2 / votes.grid == pytest.approx(l2, rel=1e-6)


def test_the_default_grid_of_votes():
    spec = VotesSpec(top=8)
    assert (spec.grid, spec.largest) == (128, 128)
    assert spec.sensitivity == Sensitivity(
        l1=510, l2_squared=43690, touched=16, shifts=tuple(sorted([2**q for q in range(8)] * 2))
    )
    assert 43690 == 2 * (4**8 - 1) // 3
    assert VotesSpec(top=3, furthest=False, max_records=5).sensitivity == Sensitivity(
        l1=35, l2_squared=25 * 21, touched=15
    )
    assert VotesSpec(top=3, fine=7).grid == 28


def test_the_papers_bound_on_votes():
    assert VotesSpec(top=8).paper_l1 == 4
    assert VotesSpec(top=1, furthest=False).paper_l1 == 1
    assert VotesSpec(top=8, max_records=3).paper_l1 == 12


@pytest.mark.parametrize(
    ("spec", "expected", "largest"),
    [
        (LabelHistogramSpec(labels=4), (1, 1, 1, (1,)), 1),
        (LabelHistogramSpec(labels=4, max_records=3), (3, 9, 3, ()), 1),
        (LengthHistogramSpec(), (1, 1, 1, (1,)), 1),
        (VocabularySpec(first=10), (10, 10, 10, (1,) * 10), 1),
        (VocabularySpec(first=10, max_records=2), (20, 40, 20, ()), 1),
        # floor(sqrt(2) 64) = 90.
        (SketchSpec(labels=2, features=3, paired=False), (270, 3 * 8100, 3, (90, 90, 90)), 90),
        # floor(sqrt(8) 1024) = 2896.
        (ClassSumsSpec(labels=3, directions=8, count=512), (2896 + 512, 1024**2 + 512**2, 9, ()), 1024),
        (
            ClassSumsSpec(labels=3, directions=4, count=7, grid=10, max_records=3),
            (3 * (20 + 7), 9 * (100 + 49), 15, ()),
            10,
        ),
        (
            QuestionnaireSpec(labels=3, directions=4, count=7, grid=10, words=3, ending=2, first=5, term=1),
            (20 + 7 + 3 + 2 + 5, 100 + 49 + 9 + 4 + 5, 5 + 2 + 5, ()),
            10,
        ),
        (
            QuestionnaireSpec(labels=3, directions=4, count=7, grid=10, person=3, max_records=3),
            (3 * (20 + 7 + 3), 9 * (100 + 49 + 9), 3 * 6, ()),
            10,
        ),
        (SelfSimilaritySpec(buckets=10), (128, 2 * 64**2, 2, (64, 64)), 64),
        (CorrectCountSpec(), (2, 2, 2, (1, 1)), 1),
    ],
)
def test_sensitivities_of_the_other_sums(spec, expected, largest):
    l1, l2_squared, touched, shifts = expected
    assert spec.sensitivity == Sensitivity(l1=l1, l2_squared=l2_squared, touched=touched, shifts=shifts)
    assert spec.sensitivity.l2 == math.sqrt(l2_squared)
    assert spec.largest == largest


@pytest.mark.parametrize("users", [1, 2])
def test_paired_features_need_noise_that_does_not_grow_with_their_number(users):
    for features in (2, 100, 1000):
        spec = SketchSpec(labels=2, features=features, max_records=users)
        assert spec.largest == spec.grid == 64
        # In units of 1: sqrt(I / 2) and I / sqrt(2), for a record.
        assert spec.sensitivity.l2 / 64 == pytest.approx(users * math.sqrt(features / 2), rel=2e-4)
        assert spec.sensitivity.l2 / 64 >= users * math.sqrt(features / 2)
        assert spec.sensitivity.l1 / 64 == pytest.approx(users * features / math.sqrt(2), rel=0.02)
        assert spec.sensitivity.l1 / 64 >= users * features / math.sqrt(2)
        assert spec.sensitivity.touched == users * features
        assert spec.sensitivity.shifts == ()


def test_what_a_choice_or_a_range_in_a_party_costs_over_its_scale():
    assert LengthRangeSpec(cap=10).sensitivity.l1 == 4
    assert LengthRangeSpec(cap=10, max_records=3).sensitivity.l1 == 12
    assert SeedChoiceSpec(choices=10).sensitivity.l1 == 2
    assert SeedChoiceSpec(choices=10, max_records=3).sensitivity.l1 == 6
    assert SeedChoiceSpec(choices=10, nearest=4).sensitivity.l1 == 1
    assert SeedChoiceSpec(choices=10, nearest=4, max_records=3).sensitivity.l1 == 3
    assert SeedChoiceSpec(choices=10, nearest=4).mechanisms == ("exponential",)


@pytest.mark.parametrize("spec", _ALL, ids=lambda spec: spec.kind)
def test_plain_values_and_back(spec):
    plain = spec_to_dict(spec)
    assert spec_from_dict(plain) == spec
    assert plain["kind"] == spec.kind
    later = {"labels_per_record"}
    assert set(plain) | later == {"kind"} | {field.name for field in dataclasses.fields(spec)} | later
    for name in set(plain) - {"kind"} - later:
        with pytest.raises(ConfigError, match="query"):
            spec_from_dict({key: value for key, value in plain.items() if key != name})
    for wrong in (
        plain | {"more": 1},
        plain | {"kind": "another"},
        {key: plain[key] for key in plain if key != "kind"},
    ):
        with pytest.raises(ConfigError, match="query"):
            spec_from_dict(wrong)
    with pytest.raises(ConfigError):
        spec_from_dict(plain | {"max_records": 0})


def test_a_plan_for_one_label_a_record_keeps_the_form_that_it_had_before_there_were_several():
    for spec in (VotesSpec(top=2), ClassSumsSpec(labels=2, directions=2, count=5), LabelSetsSpec(labels=3)):
        several = dataclasses.replace(spec, labels_per_record=3)
        assert "labels_per_record" not in spec_to_dict(spec)
        assert spec_from_dict(spec_to_dict(spec)) == spec
        assert spec_from_dict(spec_to_dict(several)) == several
    assert spec_to_dict(VotesSpec(top=2)) == {"kind": "votes", "top": 2, "furthest": True, "fine": 1, "max_records": 1}


def test_the_set_is_closed_and_complete():
    assert {spec.kind for spec in _ALL} == set(KINDS)
    assert len(KINDS) == len(set(KINDS)) == 16
    assert set(closed_set.PROVEN) == set(KINDS) - {"abstracted seeds", "rewritten records"}
    for spec in _ALL:
        assert spec.mechanisms
        assert (spec.mechanisms == mechanisms.SUMMED) == (spec.largest is not None)


_MAY_BE_ZERO = {"prefix", "lora", "nearest", *(question.name for question in QUESTIONS)}


@pytest.mark.parametrize("spec", _ALL, ids=lambda spec: spec.kind)
@pytest.mark.parametrize("wrong", [0, -1, 2**21, 1.0, True, "1", None, float("nan")])
def test_numbers_out_of_range_or_of_another_type_are_refused(spec, wrong):
    for field in dataclasses.fields(spec):
        kind = type(getattr(spec, field.name))
        right = (kind is bool and wrong is True) or (kind is float and wrong == 1 and type(wrong) is float)
        right = right or (field.name in _MAY_BE_ZERO and wrong == 0 and type(wrong) is int)
        if not right:
            with pytest.raises(ConfigError, match=field.name):
                dataclasses.replace(spec, **{field.name: wrong})


def test_the_grid_of_a_noised_choice_is_that_of_utilities():
    spec = AbstractedSeedsSpec(choices=3, candidates=4)
    assert (spec.grid, spec.utility_grid, spec.noise_grid) == (1, UNIT, UNIT)
    # K utilities in [0, 1], each of which may move by 1: the paper takes 1 for the root of this.
    assert spec.sensitivity.l2_squared == 4 * UNIT**2
    assert spec.sensitivity.shifts == (UNIT,) * 4


def test_one_spelling_of_each_number():
    assert spec_to_dict(FineTunedSpec(texts=1, learning_rate=1, temperature=2))["learning_rate"] == 1.0
    assert type(FineTunedSpec(texts=1, learning_rate=1).learning_rate) is float


def test_impossible_combinations_are_refused():
    with pytest.raises(ConfigError, match="top"):
        VotesSpec(top=MOST_VOTES + 1)
    with pytest.raises(ConfigError, match="features"):
        SketchSpec(labels=2, features=3)
    assert SketchSpec(labels=2, features=3, paired=False).features == 3
    with pytest.raises(ConfigError, match="prefix"):
        SketchSpec(labels=2, features=4, first=3, prefix=4)
    assert SketchSpec(labels=2, features=4, first=3, prefix=3).prefix == 3


def test_nobody_can_change_a_query_that_came_as_bytes():
    spec = VotesSpec(top=1, furthest=False, fine=128, max_records=1)
    arrays = {"vectors": np.eye(3, dtype=np.float32), "labels": np.zeros(3, np.int32)}
    sent = closed_set.make_query(spec, arrays)
    shapes = {name: array.shape for name, array in arrays.items()}
    got = closed_set.from_bytes(spec, shapes, closed_set.to_bytes(sent))
    assert closed_set.digest(got) == closed_set.digest(sent)
    for array in closed_set.inputs(got).values():
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
