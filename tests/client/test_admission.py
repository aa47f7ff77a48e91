"""What holds at each opening and question is the hospital's file as it is then."""

import pytest

from client.admission import HospitalTerms
from client.approval.entries import Approvals, approvals, decide
from client.guard import Limits
from client.session import RefusalError
from common import messages as m
from common.messages import Reason
from tests.support.federations import OPEN, lenient, query, service
from tests.support.party_requests import PLAIN, opened, send

LOWER = {
    "max_epsilon": lenient(max_epsilon=3.9),
    "lifetime_epsilon": lenient(lifetime_epsilon=1.0, lifetime_delta=1e-5),
    "queries": lenient(queries=("label histogram",)),
    "max_top": lenient(max_top=3),
    "min_survivors": lenient(min_survivors=2),
}


class File:
    """A hospital's file that its owner edits while the service runs."""

    def __init__(self, **terms):
        self.edit(**({"limits": OPEN, "approval": "manual"} | terms))

    def edit(self, **terms):
        self.terms = terms

    def __call__(self):
        if not self.terms:
            raise RefusalError(Reason.SETTINGS, "the file is wrong")
        return HospitalTerms(**self.terms)


def charged(party):
    return len(party._ledger.entries())


@pytest.mark.parametrize("limits", LOWER.values(), ids=LOWER)
def test_a_limit_that_is_lowered_holds_from_the_next_question_on_and_nothing_is_charged(limits, tmp_path, caplog):
    file = File()
    party = opened(tmp_path, terms=file)
    file.edit(limits=limits)
    for body in (m.Ask(query()), m.Open(PLAIN.to_json())):
        assert send(party, body) == m.Refusal(Reason.OVER_LIMIT)
    assert charged(party) == 0
    assert "expected" in caplog.text
    file.edit(limits=OPEN)
    assert isinstance(send(party, m.Ask(query())), m.Answer)
    file.edit(limits=limits)
    assert send(party, m.Ask(query(1)), index=1) == m.Refusal(Reason.OVER_LIMIT)
    assert charged(party) == 1


def test_a_limit_that_is_raised_holds_without_a_restart(tmp_path):
    file = File(limits=LOWER["max_epsilon"])
    party = service(tmp_path, 0, terms=file)
    assert send(party, m.Open(PLAIN.to_json())) == m.Refusal(Reason.OVER_LIMIT)
    file.edit(limits=lenient())
    assert isinstance(send(party, m.Open(PLAIN.to_json())), m.Opened)
    file.edit(limits=lenient(lifetime_epsilon=8.0))
    assert isinstance(send(party, m.Ask(query())), m.Answer)


def test_a_charge_is_held_against_the_limit_of_that_moment(tmp_path):
    """Another run is charged between the two questions: the plan is not checked again, and the ledger still is."""
    file = File(limits=lenient(lifetime_epsilon=5.0, lifetime_delta=1e-5))
    first, second = (service(tmp_path, 0, terms=file) for _ in range(2))
    for name, party in (("first", first), ("second", second)):
        assert isinstance(send(party, m.Open(PLAIN.to_json()), run=name), m.Opened)
    assert isinstance(send(first, m.Ask(query()), run="first"), m.Answer)
    assert isinstance(send(first, m.Ask(query(1)), run="first", index=1), m.Answer)
    assert send(second, m.Ask(query()), run="second") == m.Refusal(Reason.OVER_LIMIT)
    file.edit(limits=lenient(lifetime_epsilon=9.0, lifetime_delta=1e-5))
    assert isinstance(send(second, m.Ask(query()), run="second"), m.Answer)


def test_the_plan_is_checked_anew_only_where_limits_have_changed(tmp_path, monkeypatch):
    checked, check = [], Limits.check
    monkeypatch.setattr(Limits, "check", lambda self, *given, **how: checked.append(self) or check(self, *given, **how))
    file = File(limits=lenient())
    party = opened(tmp_path, terms=file)
    send(party, m.Ask(query()))
    assert checked == [lenient()]
    file.edit(limits=OPEN)
    assert isinstance(send(party, m.Ask(query(1)), index=1), m.Answer)
    assert checked == [lenient(), OPEN]


def test_a_file_that_is_wrong_refuses_until_it_is_mended(tmp_path):
    file = File()
    party = opened(tmp_path, terms=file)
    file.edit()
    for body in (m.Ask(query()), m.Open(PLAIN.to_json())):
        assert send(party, body) == m.Refusal(Reason.SETTINGS)
    assert charged(party) == 0
    file.edit(limits=OPEN)
    assert isinstance(send(party, m.Ask(query())), m.Answer)
    file.edit()
    assert send(party, m.Close()) == m.Closed()  # it can only erase


@pytest.fixture
def hospital(tmp_path):
    """A file, a party with approvals by it, and what a person decides about its only plan."""
    records = tmp_path / "notes.csv"
    records.write_text("text,label\n")
    file, folder = File(), tmp_path / "private"
    party = service(tmp_path, 0, terms=file, approvals=Approvals(folder, records=records, key=b"k" * 32))
    return file, party, lambda *, approve: decide(folder, *approvals(folder), approve=approve, by="anna")


def test_a_run_that_a_person_refuses_after_it_began_stops_at_its_next_question(hospital):
    _, party, decided = hospital
    assert send(party, m.Open(PLAIN.to_json())) == m.Refusal(Reason.AWAITING)
    decided(approve=True)
    assert isinstance(send(party, m.Open(PLAIN.to_json())), m.Opened)
    decided(approve=False)
    assert send(party, m.Ask(query())) == m.Refusal(Reason.DECLINED)
    assert charged(party) == 0
    decided(approve=True)
    assert isinstance(send(party, m.Ask(query())), m.Answer)


def test_a_plan_beyond_the_limits_is_kept_for_people_and_a_close_ends_it(hospital, tmp_path):
    file, party, _ = hospital
    file.edit(limits=LOWER["max_epsilon"])
    assert send(party, m.Open(PLAIN.to_json())) == m.Refusal(Reason.OVER_LIMIT)
    assert send(party, m.Close()) == m.Closed()
    (kept,) = approvals(tmp_path / "private")
    assert (kept.decision, kept.by, bool(kept.ended)) == ("refused", "limits", True)


def test_where_the_limits_no_longer_decide_a_run_waits_for_a_person(hospital):
    file, party, decided = hospital
    file.edit(limits=OPEN, approval="auto")
    assert isinstance(send(party, m.Open(PLAIN.to_json())), m.Opened)
    file.edit(limits=OPEN, approval="manual")
    assert send(party, m.Ask(query())) == m.Refusal(Reason.AWAITING)
    assert charged(party) == 0
    decided(approve=True)
    assert isinstance(send(party, m.Ask(query())), m.Answer)


def test_a_run_that_has_ended_for_good_is_not_opened_and_another_is(tmp_path):
    party = opened(tmp_path, terms=File())
    assert isinstance(send(party, m.Ask(query())), m.Answer)
    party._ledger.accept([])
    assert send(party, m.Open(PLAIN.to_json())) == m.Refusal(Reason.OVER_LIMIT)
    assert send(party, m.Ask(query()), index=1) == m.Refusal(Reason.OVER_LIMIT)
    assert charged(party) == 1
    assert isinstance(send(party, m.Open(PLAIN.to_json()), run="another"), m.Opened)
