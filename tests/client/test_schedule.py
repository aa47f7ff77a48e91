"""Replies leave at times that depend on public numbers alone, whatever the records, and whether answered or refused."""

import pytest

from client import answer
from client.admission import Terms
from client.schedule import Schedule
from common import messages as m
from common.queries.closed_set import QUERIES
from common.queries.texts import RewrittenSpec, Texts
from common.schedule import BASE_SECONDS, operations, seconds
from simulations.laboratory.audit import timing
from tests.client.test_service import PLAIN, send
from tests.support.federations import each_kind, lenient, query, records, service

ASKED = {**each_kind(), RewrittenSpec.kind: Texts(spec=RewrittenSpec(texts=2))}


class Clock:
    """A clock that stands still but for what is told to take time, and for waits."""

    def __init__(self):
        self.now, self.waits = 0.0, []

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.waits.append(seconds)
        self.now += seconds


MOST = 1000


def schedule(clock):
    return Schedule(MOST, clock=clock, sleep=clock.sleep)


def test_every_question_of_the_closed_set_has_its_time():
    unregistered = operations.dispatch(object)
    assert [each for _, each in QUERIES if operations.dispatch(each) is unregistered] == []
    with pytest.raises(NotImplementedError):
        unregistered(query(), 1)
    assert {type(asked) for asked in ASKED.values()} == {each for _, each in QUERIES}


@pytest.mark.parametrize("kind", ASKED)
def test_more_records_take_no_less_time_and_a_question_never_less_than_the_least(kind):
    times = [seconds(m.Ask(ASKED[kind]), most) for most in (1, 1000, 10**6)]
    assert BASE_SECONDS < times[0] < times[1] < times[2]


def test_what_touches_no_record_leaves_at_once():
    bodies = (m.AskShares({}), m.AskAgree(frozenset()), m.AskUnmask(frozenset()), m.Close())
    assert {seconds(body, MOST) for body in bodies} == {None}
    assert seconds(m.Open(b""), MOST) > BASE_SECONDS


@pytest.mark.parametrize(("taken", "times"), [(0.0, 1), (0.5, 1), (0.99, 1), (1.01, 2), (2.5, 4), (100.0, 128)])
def test_a_late_reply_leaves_at_the_first_doubling_at_which_it_is_ready_and_the_log_says_so(taken, times, caplog):
    clock = Clock()
    due, body = schedule(clock), m.Ask(query())
    step = seconds(body, MOST)
    clock.now = 7.0 + taken * step
    due.wait(7.0, body)
    assert clock.now == pytest.approx(7.0 + times * step)
    assert ("slow or busy" in caplog.text) == (times > 1)


def timed(folder, monkeypatch, private, limits=None, seconds_a_record=0.001):
    """When the replies to an opening and a question leave, of a party that takes so long for each of its records."""
    folder.mkdir()
    clock, real = Clock(), answer.answer

    def slow(*asked, records, **how):
        clock.now += seconds_a_record * len(records.texts)
        return real(*asked, records=records, **how)

    monkeypatch.setattr(answer, "answer", slow)
    now = lenient()
    party = service(folder, 0, private=private, terms=lambda: Terms(limits=now), schedule=schedule(clock))
    replies = [send(party, m.Open(PLAIN.to_json()))]
    left = [clock.now]
    now = limits or now
    replies.append(send(party, m.Ask(query())))
    return [type(reply).__name__ for reply in replies], [*left, clock.now - left[0]]


def test_when_replies_leave_shows_neither_how_many_records_there_are_nor_a_refusal(tmp_path, monkeypatch):
    few, many = (timed(tmp_path / str(count), monkeypatch, records(0, count)) for count in (1, 90))
    refused = timed(tmp_path / "refused", monkeypatch, records(0, 5), limits=lenient(max_epsilon=1.0))
    assert (few[0], many[0], refused[0]) == (["Opened", "Answer"], ["Opened", "Answer"], ["Opened", "Refusal"])
    expected = [seconds(body, MOST) for body in (m.Open(b""), m.Ask(query()))]
    assert [left for _, left in (few, many, refused)] == [pytest.approx(expected)] * 3


def test_a_simulation_waits_for_nothing(tmp_path):
    assert service(tmp_path, 0)._schedule is None


def test_the_audit_times_each_kind_that_is_computed_here():
    kinds = {asked.spec.kind for asked in timing._questions(timing._attack()[2])} | {"votes"}
    assert kinds == {kind for kind in ASKED if not isinstance(ASKED[kind], Texts)}
    assert timing.share_longer([1.0, 2.0], [1.0, 3.0]) == (0.5 + 0 + 1 + 1) / 4
    assert {len(times) for times in timing.measured(2, delay=0.0, scheduled=False)} == {2}
