"""A coordinator that sends the planned specification with arrays of its own making: nothing is charged for them."""

import numpy as np
import pytest

from common import messages as m
from common import wire
from common.plan.planned import PlannedQuery
from common.queries.class_sums import ClassSumsSpec
from tests.support.asking import sums
from tests.support.federations import plan, service

SPEC = ClassSumsSpec(labels=2, directions=3, count=512)
PLANNED = plan(1, secure=False, threshold=1, queries=(PlannedQuery(name="census", spec=SPEC),))
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
    **{f"a radius of {radius}": {"radius": [radius]} for radius in (0, -1, 1e-30, 1e30, np.inf, np.nan)},
    "two radii": {"radius": [1, 1]},
    "no radius": {"radius": []},
}


def send(party, body):
    envelope = m.Envelope(run="run", party=0, plan_digest=PLANNED.digest(), body=body)
    return wire.unpack(party.handle(wire.pack(envelope))).body


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_arrays_are_refused_before_anything_is_charged(name, tmp_path, monkeypatch):
    party = service(tmp_path, 0)
    assert isinstance(send(party, m.Open(PLANNED.to_json())), m.Opened)
    query = sums(BASIS, BASIS[:2], count=512)
    for array, values in HOSTILE[name].items():
        # A coordinator's own code checks nothing.
        object.__setattr__(query, array, np.asarray(values, np.float32))
    touched = []
    monkeypatch.setattr("client.answer.contribute.contribution", lambda *_: touched.append(1))
    assert send(party, m.Ask(query)) in {m.Refusal(m.Reason.MALFORMED), m.Refusal(m.Reason.UNPLANNED)}
    assert party._ledger.entries() == ()
    assert not touched


def test_a_query_of_no_plan_is_refused_before_its_basis_is_multiplied_with_itself(tmp_path):
    party = service(tmp_path, 0)
    send(party, m.Open(PLANNED.to_json()))
    assert send(party, m.Ask(sums(BASIS[[0, 0]], BASIS[:2], count=512))) == m.Refusal(m.Reason.UNPLANNED)


def test_the_same_query_unspoilt_is_answered_and_charged(tmp_path):
    party = service(tmp_path, 0)
    send(party, m.Open(PLANNED.to_json()))
    assert isinstance(send(party, m.Ask(sums(BASIS, BASIS[:2], count=512))), m.Answer)
    (entry,) = party._ledger.entries()
    assert entry.release.sensitivity == SPEC.sensitivity
