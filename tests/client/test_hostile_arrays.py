"""A coordinator that sends the planned specification with arrays of its own making: nothing is charged for them."""

from dataclasses import replace

import numpy as np
import pytest

from common import messages as m
from common.plan.planned import PlannedQuery
from common.queries.class_sums import ClassSumsSpec
from tests.support.asking import questionnaire, sums
from tests.support.federations import OPEN, plan, service
from tests.support.party_requests import opened, send

SPEC = ClassSumsSpec(labels=2, directions=3, count=512)
PLANNED = plan(1, secure=False, threshold=1, queries=(PlannedQuery(name="class sums", spec=SPEC),))
BASIS = np.eye(3, 32, dtype=np.float32)
HOSTILE = {
    "a basis that is not orthogonal": {"basis": BASIS[[0, 1, 1]]},
    "a basis that is too long": {"basis": 1e30 * BASIS},
    "a basis of zeros": {"basis": 0 * BASIS},
    "a basis that is not a number": {"basis": np.full_like(BASIS, np.nan)},
    "a basis that is infinite": {"basis": np.full_like(BASIS, np.inf)},
    "another number of directions": {"basis": BASIS[:2]},
    "a basis in one dimension": {"basis": BASIS.ravel()},
    "a basis for another encoder": {"basis": BASIS[:, :16], "centres": BASIS[:2, :16]},
    "centres of three labels": {"centres": BASIS},
    "centres far away": {"centres": 1e30 * BASIS[:2]},
    "centres that are not a number": {"centres": np.full_like(BASIS[:2], np.nan)},
    **{f"a radius of {radius}": {"radius": np.float32([radius])} for radius in (0, -1, 1e-30, 1e30, np.inf, np.nan)},
    "two radii": {"radius": np.float32([1, 1])},
    "no radius": {"radius": np.float32([])},
}


QUESTIONNAIRE = plan(
    1,
    secure=False,
    threshold=1,
    queries=(PlannedQuery(name="class sums", spec=questionnaire(BASIS, BASIS[:2]).spec),),
)
LISTS = {
    "no list": {"terms": np.zeros(0, np.uint8)},
    "a list without an end": {"terms": np.frombuffer(b"fever", np.uint8)},
    "an empty term": {"terms": np.frombuffer(b"fever\n\n", np.uint8)},
    "a term twice": {"terms": np.frombuffer(b"fever\nfever\n", np.uint8)},
    "half of a character": {"terms": np.frombuffer(b"\xed\xa0\x80\n", np.uint8)},
    "a term of nine words": {"terms": np.frombuffer(b"a b c d e f g h i\n", np.uint8)},
}


CASES = {f"class sums: {name}": (PLANNED, arrays) for name, arrays in HOSTILE.items()}
CASES |= {f"questionnaire: {name}": (QUESTIONNAIRE, arrays) for name, arrays in (LISTS | HOSTILE).items()}


@pytest.mark.parametrize(("agreed", "arrays"), CASES.values(), ids=CASES)
def test_hostile_arrays_are_refused_before_anything_is_charged(agreed, arrays, tmp_path, monkeypatch):
    party = opened(tmp_path, agreed)
    query = sums(BASIS, BASIS[:2], count=512) if agreed is PLANNED else questionnaire(BASIS, BASIS[:2])
    for array, values in arrays.items():
        # A coordinator's own code checks nothing.
        object.__setattr__(query, array, values)
    touched = []
    monkeypatch.setattr("client.answer.contribute.contribution", lambda *_: touched.append(1))
    reply = send(party, m.Ask(query), agreed=agreed)
    assert reply in {m.Refusal(m.Reason.MALFORMED), m.Refusal(m.Reason.UNPLANNED)}
    assert party._ledger.entries() == ()
    assert not touched


def test_a_query_of_no_plan_is_refused_before_its_basis_is_multiplied_with_itself(tmp_path):
    asked = sums(BASIS[[0, 0]], BASIS[:2], count=512)
    assert send(opened(tmp_path, PLANNED), m.Ask(asked), agreed=PLANNED) == m.Refusal(m.Reason.UNPLANNED)


@pytest.mark.parametrize("change", [{"words": 21}, {"first": 3}, {"term": 11}, {"ending": 0}])
def test_other_weights_or_questions_than_planned_are_refused(change, tmp_path):
    party = opened(tmp_path, QUESTIONNAIRE)
    for asked in (questionnaire(BASIS, BASIS[:2], **change), sums(BASIS, BASIS[:2], count=512)):
        assert send(party, m.Ask(asked), agreed=QUESTIONNAIRE) == m.Refusal(m.Reason.UNPLANNED)
    assert isinstance(send(party, m.Ask(questionnaire(BASIS, BASIS[:2])), agreed=QUESTIONNAIRE), m.Answer)


def test_a_hospital_can_answer_class_sums_and_no_questionnaire(tmp_path):
    limits = replace(OPEN, queries=tuple(kind for kind in OPEN.queries if kind != "questionnaire"))
    party = service(tmp_path, 0, limits=limits)
    assert send(party, m.Open(QUESTIONNAIRE.to_json()), agreed=QUESTIONNAIRE) == m.Refusal(m.Reason.OVER_LIMIT)
    assert isinstance(send(party, m.Open(PLANNED.to_json()), agreed=PLANNED), m.Opened)


def test_the_same_query_unspoilt_is_answered_and_charged(tmp_path):
    party = opened(tmp_path, PLANNED)
    assert isinstance(send(party, m.Ask(sums(BASIS, BASIS[:2], count=512)), agreed=PLANNED), m.Answer)
    (entry,) = party._ledger.entries()
    assert entry.release.sensitivity == SPEC.sensitivity
