"""Replies leave at times that depend on public numbers alone, whatever the records, and whether answered or refused."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.stats import nbinom

from client import answer
from client.admission import HospitalTerms
from client.records import EmbeddedRecords, PartyRecords
from client.schedule import Schedule
from common import messages as m
from common.domain import MOST_LABELS, Record
from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.privacy import mechanisms
from common.queries.closed_set import QUERIES, make_query
from common.queries.histograms import LabelHistogramSpec, Vocabulary, VocabularySpec
from common.queries.label_sets import LabelSetsSpec
from common.queries.seed_choice import SeedChoice, SeedChoiceSpec
from common.queries.terms import encode_terms
from common.queries.texts import RewrittenSpec, Texts
from common.schedule import BASE_SECONDS, OPERATION_SECONDS, operations, seconds, tosses
from simulations.laboratory.audit import timed_questions, timing
from tests.support.federations import ENCODER, LABELS, each_kind, lenient, plan, query, records, service
from tests.support.party_requests import PLAIN, send

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


def planned(asked, mechanism=None, scale=0.0, **changes):
    """A plan for this question alone."""
    one = PlannedQuery(name="q", spec=asked.spec, mechanism=mechanism or asked.spec.mechanisms[0], scale=scale)
    settings = {"parties": 1, "threshold": 1, "secure": False, "max_dropouts": 0, "colluders": 0}
    fixed = {"method": "t", "labels": LABELS, "encoder": "e", "epsilon": math.inf, "delta": 1e-5, "unit": "sample"}
    return Plan(**(settings | fixed | changes), queries=(one,))


def due_after(asked, most=MOST, **noise):
    return seconds(m.Ask(asked), most, planned(asked, **noise))


def schedule(clock):
    return Schedule(MOST, clock=clock, sleep=clock.sleep)


def test_every_question_of_the_closed_set_has_its_time():
    unregistered = operations.dispatch(object)
    assert [query_type for _, query_type in QUERIES if operations.dispatch(query_type) is unregistered] == []
    with pytest.raises(NotImplementedError):
        unregistered(query(), 1)
    assert {type(asked) for asked in ASKED.values()} == {query_type for _, query_type in QUERIES}


@pytest.mark.parametrize("kind", ASKED)
def test_more_records_take_no_less_time_and_a_question_never_less_than_the_least(kind):
    times = [due_after(ASKED[kind], most) for most in (1, 1000, 10**6)]
    assert BASE_SECONDS < times[0] < times[1] < times[2]


def test_what_neither_needs_nor_frees_records_leaves_at_once():
    bodies = (m.AskShares({}), m.AskAgree(frozenset()), m.AskUnmask(frozenset()))
    assert {seconds(body, MOST, PLAIN) for body in bodies} == {None}
    assert seconds(m.Open(b""), MOST, PLAIN) > BASE_SECONDS
    assert {seconds(m.Close(), MOST, agreed) for agreed in (PLAIN, None)} == {BASE_SECONDS}


def test_in_a_plan_with_several_labels_a_record_has_time_under_each_whatever_is_asked():
    specs = [asked.spec for asked in each_kind().values() if asked.spec.labels_per_record == 1]
    kinds = [PlannedQuery(name=spec.kind, spec=spec, mechanism=spec.mechanisms[0]) for spec in specs]
    one = replace(planned(query()), queries=tuple(kinds))
    sets = PlannedQuery(name="most", spec=LabelSetsSpec(labels=2, labels_per_record=2))
    two = replace(one, queries=(*one.queries, sets))
    assert len(one.queries) > 5
    assert seconds(m.Close(), MOST, two) == BASE_SECONDS
    for index, body in enumerate([m.Open(b""), *(m.Ask(ASKED[spec.kind]) for spec in specs)], -1):
        assert seconds(body, MOST, two, max(index, 0)) == seconds(body, 2 * MOST, one, max(index, 0))


def test_an_opening_has_time_for_the_keys_of_all_rounds():
    few, many = (seconds(m.Open(b""), MOST, plan(3, times=times)) for times in (1, 10_000))
    assert many - few > 2.4  # 10,000 took 0.5 to 0.75 s
    assert seconds(m.Open(b""), MOST, plan(1, times=10_000)) < few


@pytest.mark.parametrize(
    ("noise", "numbers", "least"),
    [
        ({"mechanism": "gaussian", "scale": 1e6}, 20_000, 0.9),  # took 0.22 to 0.29 s
        ({"mechanism": "laplace", "scale": 5000.0}, 1000, 0.7),  # 0.36 to 0.40 s, for the table
    ],
)
def test_a_question_has_time_for_noise_that_takes_long(noise, numbers, least):
    asked = make_query(LabelHistogramSpec(labels=numbers), {})
    labels = tuple(map(str, range(numbers)))
    usual = due_after(asked, labels=labels, mechanism=noise["mechanism"], scale=4.0)
    assert due_after(asked, labels=labels, **noise) - usual > least > usual


KINDS_OF_CHOICE = [
    (nearest, mechanism) for nearest in (0, 1, 3) for mechanism in SeedChoiceSpec(choices=1, nearest=nearest).mechanisms
]


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("size", [(2, 0.25), (30, 0.25), (30, 2.0), (30, 0.01), (30, 0.0), (300, 0.2)])
@pytest.mark.parametrize("kind", KINDS_OF_CHOICE)
def test_choices_of_seeds_have_time_for_all_coins_whatever_the_records(kind, size, share, monkeypatch):
    """A part of the records chooses among candidates of which one has utility 1 and the others 0, as slow as can be."""
    (nearest, mechanism), (candidates, scale) = kind, size
    coins, choices = [], 200
    toss = mechanisms.bernoulli_exp
    monkeypatch.setattr(mechanisms, "bernoulli_exp", lambda *given: coins.append(1) or toss(*given))
    vectors = np.repeat(np.eye(1, 4, dtype=np.float32), candidates, axis=0)
    vectors[1:] *= -1
    spec = SeedChoiceSpec(choices=choices, nearest=nearest)
    asked = SeedChoice(spec=spec, vectors=vectors, labels=np.zeros(candidates, dtype=np.int32))
    private = EmbeddedRecords(
        vectors=np.repeat(vectors[:1], choices, axis=0),
        labels=(np.arange(choices) >= share * choices).astype(np.int32),
        texts=tuple(map(str, range(choices))),
    )
    how = PlannedQuery(name="q", spec=spec, mechanism=mechanism, scale=scale)
    monkeypatch.setattr(answer, "secure_bytes", lambda count: bytes(range(count)))
    answer._inside(asked, how, private)
    least = max(tosses(asked, scale), choices)
    assert choices <= len(coins) <= least
    if share == 1 and mechanism == "exponential":
        assert least < 2 * len(coins)  # the bound is no larger than the worst case needs
    without = seconds(m.Ask(asked), MOST, planned(asked, mechanism, scale=1e9))
    assert seconds(m.Ask(asked), MOST, planned(asked, mechanism, scale)) - without == pytest.approx(
        40e-6 * (tosses(asked, scale) - tosses(asked, 1e9))
    )


def test_more_coins_than_are_scheduled_are_as_unlikely_for_one_choice_as_for_many():
    for choices in (1, 10, 1000):
        asked = SeedChoice(
            spec=SeedChoiceSpec(choices=choices), vectors=np.ones((30, 1), np.float32), labels=np.zeros(30, np.int32)
        )
        # Without noise one of 30 candidates is taken: coins until the last of so many successes of probability 1/30.
        assert 1e-15 < nbinom(choices, 1 / 30).sf(tosses(asked, 0.0) - choices) < math.exp(-20)


def test_a_question_has_time_for_the_words_and_bytes_of_its_vocabulary():
    def asked(*terms):
        return due_after(Vocabulary(spec=VocabularySpec(first=2), terms=encode_terms(terms)))

    assert asked("a") < asked("abc") < asked("a b") < asked("a b c d e f g h")
    assert asked("a b c d e f g h") > 2 * (asked("a") - BASE_SECONDS)


def test_waits_end_when_the_service_has_stopped(tmp_path):
    waiting = Schedule(2**20)
    party = service(tmp_path, 0, schedule=waiting)
    with ThreadPoolExecutor(1) as relay:
        reply = relay.submit(send, party, m.Open(PLAIN.to_json()))
        assert not reply.done()
        party.stop()
        assert isinstance(reply.result(timeout=20), m.Opened)  # of the 42 s of its schedule
    service(tmp_path, 1).stop()


@pytest.mark.parametrize(("taken", "times"), [(0.0, 1), (0.5, 1), (0.99, 1), (1.01, 2), (2.5, 4), (100.0, 128)])
def test_a_late_reply_leaves_at_the_first_doubling_at_which_it_is_ready_and_the_log_says_so(taken, times, caplog):
    clock = Clock()
    due, body = schedule(clock), m.Ask(query())
    step = seconds(body, MOST, PLAIN)
    clock.now = 7.0 + taken * step
    due.wait(7.0, body, PLAIN)
    assert clock.now == pytest.approx(7.0 + times * step)
    assert ("or busy" in caplog.text) == (times > 1)


@pytest.mark.parametrize("of_hospital", [True, False])
def test_a_hospitals_log_has_a_line_for_an_answered_question_and_a_simulations_has_none(of_hospital, tmp_path, caplog):
    caplog.set_level("INFO", "caucus.party")
    party = service(tmp_path, 0, **({"schedule": schedule(Clock())} if of_hospital else {}))
    for request in (m.Open(PLAIN.to_json()), m.Ask(query())):
        send(party, request)
    said = f"query 1 of {PLAIN.total_queries // PLAIN.max_attempts} of run run"
    assert sum(said in message for message in caplog.messages) == len(caplog.messages) == of_hospital


def timed(folder, monkeypatch, private, limits=None, seconds_a_record=0.001):
    """When the replies to an opening and a question leave, of a party that takes so long for each of its records."""
    folder.mkdir()
    clock, real = Clock(), answer.answer

    def slow(*asked, records, **how):
        clock.now += seconds_a_record * len(records.texts)
        return real(*asked, records=records, **how)

    monkeypatch.setattr(answer, "answer", slow)
    now = lenient()
    party = service(folder, 0, private=private, terms=lambda: HospitalTerms(limits=now), schedule=schedule(clock))
    replies = [send(party, m.Open(PLAIN.to_json()))]
    left = [clock.now]
    now = limits or now
    replies.append(send(party, m.Ask(query())))
    return [type(reply).__name__ for reply in replies], [*left, clock.now - left[0]]


def test_when_replies_leave_shows_neither_how_many_records_there_are_nor_a_refusal(tmp_path, monkeypatch):
    few, many = (timed(tmp_path / str(count), monkeypatch, records(0, count)) for count in (1, 90))
    refused = timed(tmp_path / "refused", monkeypatch, records(0, 5), limits=lenient(max_epsilon=1.0))
    assert (few[0], many[0], refused[0]) == (["Opened", "Answer"], ["Opened", "Answer"], ["Opened", "Refusal"])
    expected = [seconds(body, MOST, PLAIN) for body in (m.Open(b""), m.Ask(query()))]
    assert [left for _, left in (few, many, refused)] == [pytest.approx(expected)] * 3


def test_when_replies_leave_does_not_show_how_many_labels_the_records_have(tmp_path, monkeypatch):
    names = tuple(map(str, range(MOST_LABELS)))
    counted = make_query(LabelHistogramSpec(labels=len(names)), {})
    sets = PlannedQuery(name="sets", spec=LabelSetsSpec(labels=len(names), labels_per_record=len(names)))
    agreed = planned(counted, labels=names, encoder=ENCODER.digest, max_records_per_party=MOST)
    agreed = replace(agreed, queries=(*agreed.queries, sets))
    for_plan, limited, a_row = PartyRecords.for_plan, EmbeddedRecords.limited, 20_000 * OPERATION_SECONDS
    for many in (1, len(names)):
        clock = Clock()

        def opened(*private, clock=clock, **how):
            rows = for_plan(*private, **how)
            clock.now += a_row * len(rows.texts)
            return rows

        def asked(rows, *most, clock=clock):
            clock.now += a_row * len(rows.texts)
            return limited(rows, *most)

        monkeypatch.setattr(PartyRecords, "for_plan", opened)
        monkeypatch.setattr(EmbeddedRecords, "limited", asked)
        private = [Record("note", names[0], more=names[1:many])] * MOST
        (folder := tmp_path / str(many)).mkdir()
        party = service(folder, 0, private=private, schedule=schedule(clock))
        replies = [send(party, body, agreed=agreed) for body in (m.Open(agreed.to_json()), m.Ask(counted))]
        assert [type(reply) for reply in replies] == [m.Opened, m.Answer]
        assert clock.now == pytest.approx(sum(seconds(body, MOST, agreed) for body in (m.Open(b""), m.Ask(counted))))


LARGE = m.Ask(make_query(LabelHistogramSpec(labels=2**20), {}))
PLANNED = query()
WIDE = m.Ask(replace(PLANNED, vectors=np.pad(PLANNED.vectors, ((0, 0), (0, 1)))))


@pytest.mark.parametrize(
    ("body", "place", "reason"),
    [
        (LARGE, {"run": "another"}, m.Reason.UNPLANNED),
        (LARGE, {}, m.Reason.UNPLANNED),
        (LARGE, {"index": 10**6}, m.Reason.UNPLANNED),
        (LARGE, {"attempt": 3}, m.Reason.OUT_OF_ORDER),
        (LARGE, {"party": 1}, m.Reason.MALFORMED),
        (WIDE, {}, m.Reason.UNPLANNED),
        (m.Open(b"{}"), {}, m.Reason.MALFORMED),
        (m.Open(PLAIN.to_json()), {"plan_digest": bytes(32)}, m.Reason.UNPLANNED),
    ],
)
def test_what_public_facts_refuse_keeps_nobody_waiting(tmp_path, body, place, reason):
    clock = Clock()
    party = service(tmp_path, 0, schedule=schedule(clock))
    assert send(party, LARGE) == m.Refusal(m.Reason.OUT_OF_ORDER)
    send(party, m.Open(PLAIN.to_json()))
    assert send(party, body, **place) == m.Refusal(reason)
    assert send(party, m.Close()) == m.Closed()
    assert [clock.waits[place] for place in (0, 2, 3)] == [pytest.approx(BASE_SECONDS)] * 3


def test_the_audit_times_each_kind_that_is_computed_here():
    kinds = {asked.spec.kind for asked in timed_questions.questions(timing._attack()[2])} | {"votes"}
    assert kinds == {kind for kind in ASKED if not isinstance(ASKED[kind], Texts)}
    slowest = [(len(query.vectors), how.scale) for query, how, _ in timed_questions.slowest_choices(2)]
    assert set(slowest) == set(product(timed_questions.FEW, timed_questions.SMALL))
    assert {how.mechanism for _, how, _ in timed_questions.slowest_choices(2)} == set(
        SeedChoiceSpec(choices=2).mechanisms
    )
    assert timing.share_longer([1.0, 2.0], [1.0, 3.0]) == (0.5 + 0 + 1 + 1) / 4
    assert {len(times) for times in timing.measure_answers(2, delay=0.0, scheduled=False)} == {2}
