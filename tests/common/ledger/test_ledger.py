import concurrent.futures
import dataclasses
import itertools
import multiprocessing
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.errors import InternalError, LedgerError, RefusedError, SurvivorsError
from common.ledger.ledger import ChargedRun, Ledger
from common.ledger.log import Entry, Log
from tests.support.ledgers import ANSWER, KEY, RELEASE, reservation

OTHER = bytes(range(64, 128))
FRESH = bytes([2]) * 32


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path):
    return Ledger(path)


def test_the_same_query_again_gets_the_kept_answer_and_costs_nothing(ledger, path):
    ledger.reserve(**reservation())
    charged = ledger.releases()
    assert ledger.keep("r", 0, ANSWER) == ANSWER
    again = Ledger(path).reserve(**reservation())
    assert again.answer == ANSWER
    assert Ledger(path).keep("r", 0, OTHER) == ANSWER
    assert ledger.releases() == charged == (RELEASE,)
    assert ledger.entries() == (again,)


@pytest.mark.parametrize(
    "changes",
    [
        {"query_digest": b"x" * 32},
        {"plan_digest": b"x" * 32},
        {"release": dataclasses.replace(RELEASE, scale=21.0)},
        {"plan_digest": b"x" * 32, "index": 1},
    ],
)
def test_another_query_or_another_plan_is_refused_and_not_charged(ledger, changes):
    first = ledger.reserve(**reservation())
    with pytest.raises(RefusedError):
        ledger.reserve(**reservation(**changes))
    assert ledger.entries() == (first,)


def test_all_answers_below_one_are_closed_at_once(ledger):
    for index in range(3):
        ledger.reserve(**reservation(index=index, query_digest=bytes([index]) * 32))
    ledger.commit_before("r", 2)
    assert [entry.committed for entry in ledger.entries("r")] == [True, True, False]


def test_commit_erases_the_answer_from_the_disk_and_closes_it(ledger, path):
    ledger.reserve(**reservation())
    ledger.keep("r", 0, ANSWER)
    assert ANSWER in path.read_bytes()
    ledger.commit("r", 0)
    ledger.commit("r", 0)
    assert [file for file in path.parent.iterdir() if ANSWER in file.read_bytes()] == []
    (entry,) = ledger.entries()
    assert entry.committed
    assert entry.answer is None
    with pytest.raises(RefusedError, match="closed"):
        ledger.keep("r", 0, OTHER)
    assert ledger.reserve(**reservation()) == entry


def test_what_may_leave_is_in_the_head_before_it_leaves(ledger):
    heads = [ledger.head()]
    for step in (
        lambda: ledger.reserve(**reservation()),
        lambda: ledger.keep("r", 0, ANSWER),
        lambda: ledger.survivors("r", 0, {0, 1}),
        lambda: ledger.unmask("r", 0),
        lambda: ledger.commit("r", 0),
    ):
        step()
        heads.append(ledger.head())
    assert [head.events for head in heads] == list(range(6))
    assert len({head.chain for head in heads}) == 6


def test_what_a_ledger_lacks_is_charged_and_no_run_of_before_goes_on(ledger, path):
    ledger.reserve(**reservation())
    ledger.keep("r", 0, ANSWER)
    ledger.sample_key("r", "draw", KEY)
    lost = [Entry(**reservation(run=run, index=index)) for run, index in (("r", 1), ("s", 0))]
    ledger.accept(lost, ["s", "t"])
    assert ledger.releases() == (RELEASE,) * 3
    assert all(entry.committed for entry in ledger.entries())
    digest = reservation()["plan_digest"].hex()
    assert ledger.runs() == {"r": ChargedRun(2, digest), "s": ChargedRun(1, digest), "t": ChargedRun(0, "")}
    assert all(map(ledger.ended, "rst"))
    assert not ledger.ended("u")
    before = ledger.head()
    for run, index in (("r", 0), ("r", 2), ("s", 0), ("t", 0)):
        with pytest.raises(RefusedError, match="has ended"):
            Ledger(path).reserve(**reservation(run=run, index=index))
    with pytest.raises(RefusedError, match="is closed"):
        ledger.sample_key("r", "draw", KEY)
    ledger.accept([], ["t"])
    assert ledger.head() == before
    ledger.reserve(**reservation(run="u"))


def test_one_set_of_survivors(ledger):
    ledger.reserve(**reservation())
    ledger.survivors("r", 0, {2, 0, 1})
    ledger.survivors("r", 0, {0, 1, 2})
    for other in ({0, 1}, {0, 1, 2, 3}, set()):
        with pytest.raises(RefusedError, match="survivors"):
            ledger.survivors("r", 0, other)
    assert ledger.entries()[0].survivors == {0, 1, 2}
    ledger.commit("r", 0)
    ledger.survivors("r", 0, {0, 1, 2})
    with pytest.raises(RefusedError):
        ledger.survivors("r", 0, {0, 1})


def test_a_question_is_opened_over_one_set_of_parties_whatever_its_number(ledger):
    for index in (0, 1, 2):
        ledger.reserve(**reservation(index=index, query_digest=b"q" * 32 if index < 2 else b"o" * 32))
    ledger.reserve(**reservation(run="s"))
    ledger.survivors("r", 0, {0, 1, 2})
    ledger.survivors("r", 1, {0, 1})  # no share has left yet: a further attempt may be over others
    ledger.unmask("r", 1)
    ledger.unmask("r", 1)
    for refused in (lambda: ledger.unmask("r", 0), lambda: ledger.survivors("r", 0, {0, 1, 2})):
        with pytest.raises(SurvivorsError, match="1 and 0"):
            refused()
    ledger.survivors("r", 2, {1, 2})  # another question
    ledger.unmask("r", 2)
    with pytest.raises(SurvivorsError, match="no survivors"):
        ledger.unmask("s", 0)
    assert [entry.unmasked for entry in ledger.entries("r")] == [False, True, True]


def test_what_is_closed_is_not_opened_any_more(ledger):
    ledger.reserve(**reservation())
    ledger.survivors("r", 0, {0, 1})
    ledger.commit("r", 0)
    with pytest.raises(RefusedError, match="closed"):
        ledger.unmask("r", 0)


def test_no_survivors_after_an_entry_was_closed_without(ledger):
    ledger.reserve(**reservation())
    ledger.commit("r", 0)
    with pytest.raises(RefusedError):
        ledger.survivors("r", 0, {0, 1})


def test_entries_that_were_never_reserved(ledger):
    with pytest.raises(InternalError):
        ledger.commit("r", 0)
    with pytest.raises(InternalError):
        ledger.survivors("r", 0, {0})
    with pytest.raises(InternalError):
        ledger.keep("r", 0, ANSWER)


def test_releases_of_all_charges_whether_closed_or_not(ledger):
    other = dataclasses.replace(RELEASE, scale=7.0, rate=0.5, draw="half")
    assert ledger.releases() == ()
    for index in (2, 0, 1):
        ledger.reserve(**reservation(index=index))
    ledger.commit("r", 1)
    ledger.reserve(**reservation(run="s", plan_digest=b"x" * 32, release=other))
    assert ledger.releases("r") == (RELEASE,) * 3
    # Another run has another subsample.
    assert ledger.releases() == (RELEASE, RELEASE, RELEASE, dataclasses.replace(other, draw='["s", "half"]'))
    assert ledger.releases("nobody") == ()
    assert [(entry.run, entry.index) for entry in ledger.entries()] == [("r", 0), ("r", 1), ("r", 2), ("s", 0)]
    assert [entry.run for entry in ledger.entries("s")] == ["s"]


def test_a_charge_says_when(ledger):
    before = datetime.now(UTC) - timedelta(seconds=1)
    charged = datetime.fromisoformat(ledger.reserve(**reservation()).charged)
    assert before <= charged <= datetime.now(UTC)
    assert ledger.entries()[0].charged == charged.isoformat()


def test_the_answer_is_not_shown(ledger):
    ledger.reserve(**reservation())
    ledger.keep("r", 0, ANSWER)
    assert repr(ANSWER)[2:-1] not in repr(ledger.entries())


def test_an_answer_that_was_kept_is_given_whatever_has_become_of_the_records(ledger):
    before, after = ledger.data_set([b"a"]), ledger.data_set([b"b"])
    ledger.reserve(**reservation(), data_set=before)
    with pytest.raises(RefusedError, match="other records"):
        ledger.reserve(**reservation(), data_set=after)
    ledger.keep("r", 0, ANSWER)
    entry = ledger.reserve(**reservation(), data_set=after)
    assert (entry.answer, entry.data_set) == (ANSWER, before)
    ledger.commit("r", 0)
    assert ledger.reserve(**reservation(), data_set=after).committed


def _limit(most):
    def allow(charges):
        if len(charges) > most:
            raise RefusedError("too many")

    return allow


def test_a_limit_sees_every_charge_and_the_new_one_last(ledger):
    seen = []
    other = dataclasses.replace(RELEASE, scale=7.0)
    ledger.reserve(**reservation(), allow=seen.append)
    ledger.reserve(**reservation(run="s", release=other), allow=seen.append)
    assert seen == [(RELEASE,), (RELEASE, other)]
    # Nothing new, nothing to allow.
    ledger.reserve(**reservation(), allow=_limit(0))


def test_what_a_limit_refuses_is_not_charged(ledger):
    ledger.reserve(**reservation())
    head = ledger.verify()
    with pytest.raises(RefusedError, match="too many"):
        ledger.reserve(**reservation(index=1), allow=_limit(1))
    assert ledger.verify() == head
    ledger.reserve(**reservation(index=1), allow=_limit(2))


def test_a_limit_counts_the_runs_that_may_have_had_the_same_record(ledger):
    first, apart = ledger.data_set([b"a", b"b"]), ledger.data_set([b"z"])
    appended, empty = ledger.data_set([b"a", b"b", b"c"]), ledger.data_set([])
    runs = {3.0: "first", 4.0: "apart", 5.0: "unnamed", 6.0: "empty", 7.0: "new"}
    for (scale, run), data_set in zip(runs.items(), (first, apart, "", empty), strict=False):
        ledger.reserve(**reservation(run=run, release=dataclasses.replace(RELEASE, scale=scale)), data_set=data_set)
    seen = []

    def counted(data_set):
        def refuse(charges):
            seen.append([runs[release.scale] for release in charges])
            raise RefusedError("asked only")

        new = dataclasses.replace(RELEASE, scale=7.0)
        with pytest.raises(RefusedError, match="asked only"):
            ledger.reserve(**reservation(run="new", release=new), data_set=data_set, allow=refuse)
        *names, _ = seen[-1]
        assert [runs[release.scale] for release in ledger.charged(data_set, but="new")] == names
        assert ledger.charged(data_set, but="first") == ledger.charged(data_set, but="new")["first" in names :]
        return seen.pop()

    assert counted(appended) == ["first", "unnamed", "new"]
    assert counted(first) == ["first", "unnamed", "new"]
    assert counted(apart) == ["apart", "unnamed", "new"]
    assert counted(empty) == ["unnamed", "empty", "new"]
    assert counted("") == ["first", "apart", "unnamed", "empty", "new"]


def test_a_data_set_that_nobody_named_cannot_be_charged(ledger):
    with pytest.raises(InternalError, match="never named"):
        ledger.reserve(**reservation(), data_set="ab" * 32)
    with pytest.raises(InternalError, match="never named"):
        ledger.charged("ab" * 32, but="r")
    assert ledger.entries() == ()


def test_the_first_key_of_a_subsample_is_the_only_one(ledger, path):
    assert ledger.sample_key("r", "draw", KEY) == KEY
    assert Ledger(path).sample_key("r", "draw", FRESH) == KEY
    assert ledger.sample_key("r", "another draw", FRESH) == FRESH
    assert ledger.sample_key("s", "draw", FRESH) == FRESH


def test_a_subsample_is_never_drawn_again_after_its_run_was_closed(ledger, path):
    ledger.sample_key("r", "draw", KEY)
    ledger.sample_key("s", "draw", FRESH)
    assert KEY in path.read_bytes()
    ledger.forget("r")
    ledger.forget("r")
    assert [file for file in path.parent.iterdir() if KEY in file.read_bytes()] == []
    with pytest.raises(RefusedError, match="is closed"):
        Ledger(path).sample_key("r", "draw", FRESH)
    assert ledger.sample_key("s", "draw", KEY) == FRESH


def test_a_short_sample_key_is_our_bug(ledger):
    with pytest.raises(InternalError, match="32 bytes; got 4"):
        ledger.sample_key("r", "draw", b"weak")


def test_a_failed_transaction_leaves_nothing(ledger, monkeypatch):
    head = ledger.verify()
    monkeypatch.setattr("common.ledger.log.canonical", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        ledger.reserve(**reservation())
    assert ledger.entries() == ()
    assert ledger.verify() == head


def _pool(processes):
    if processes:
        return concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("forkserver"))
    return concurrent.futures.ThreadPoolExecutor(6)


def _keep(path, index, answer):
    ledger = Ledger(path)
    ledger.reserve(**reservation(index=index))
    return ledger.keep("r", index, answer)


@pytest.mark.parametrize("processes", [False, True])
def test_concurrent_writers_agree_on_one_answer_for_each_entry(path, processes):
    keys = [bytes([i]) * 32 for i in range(6)]
    with _pool(processes) as pool:
        got = [pool.submit(_keep, path, index, key) for key in keys for index in range(2)]
        results = [future.result() for future in got]
    assert len(set(results[0::2])) == len(set(results[1::2])) == 1
    assert len(Ledger(path).entries()) == 2


def _charge_until_refused(path, run, most):
    """How many of `most` + 5 charges were allowed."""
    ledger = Ledger(path)
    data_set = ledger.data_set([b"shared", run.encode()])
    allowed = 0
    for index in range(most + 5):
        try:
            ledger.reserve(**reservation(run=run, index=index), data_set=data_set, allow=_limit(most))
            allowed += 1
        except RefusedError:
            pass
    return allowed


@pytest.mark.parametrize("processes", [False, True])
def test_two_runs_at_once_never_pass_a_limit_and_lose_no_charge(path, processes):
    most = 40
    with _pool(processes) as pool:
        got = [pool.submit(_charge_until_refused, path, run, most) for run in ("r", "s")]
        allowed = [future.result() for future in got]
    assert sum(allowed) == most
    assert [len(Ledger(path).releases(run)) for run in ("r", "s")] == allowed


class Model:
    """The ledger's rules in a few dictionaries; each operation says what it returns, or "refused"."""

    def __init__(self):
        self.plans, self.queries, self.answers, self.sums, self.keys = {}, {}, {}, {}, {}
        self.opened, self.closed = set(), set()

    def reserve(self, run, index, plan, query):
        if self.plans.get(run, plan) != plan or self.queries.get((run, index), query) != query:
            return "refused"
        self.plans[run], self.queries[run, index] = plan, query
        return self.answers.get((run, index)), (run, index) in self.closed

    def keep(self, run, index, answer):
        if (run, index) not in self.queries or (run, index) in self.closed:
            return "refused"
        return self.answers.setdefault((run, index), answer)

    def survivors(self, run, index, parties):
        if (run, index) not in self.queries:
            return "refused"
        if self.otherwise_opened(run, index, parties):
            return "refused"
        if (run, index) not in self.closed:
            self.sums.setdefault((run, index), parties)
        return None if self.sums.get((run, index)) == parties else "refused"

    def otherwise_opened(self, run, index, parties):
        """Whether the same question was opened over other parties."""
        same = [place for place in self.opened if place[0] == run and self.queries[place] == self.queries[run, index]]
        return any(self.sums[place] != parties for place in same if place != (run, index))

    def unmask(self, run, index):
        place = run, index
        if place not in self.queries or place not in self.sums:
            return "refused"
        if place not in self.opened and (place in self.closed or self.otherwise_opened(*place, self.sums[place])):
            return "refused"
        self.opened.add(place)
        return None

    def commit(self, run, index):
        if (run, index) not in self.queries:
            return "refused"
        self.closed.add((run, index))
        self.answers.pop((run, index), None)
        return None

    def sample_key(self, run, draw, fresh):
        key = self.keys.setdefault((run, draw), fresh)
        return "refused" if key is None else key

    def commit_before(self, run, index):
        for place in [place for place in self.queries if place[0] == run and place[1] < index]:
            self.commit(*place)

    def forget(self, run):
        self.commit_before(run, 2)
        self.keys |= {place: None for place in self.keys if place[0] == run}


def _reserve(ledger, run, index, plan, query):
    entry = ledger.reserve(**reservation(run=run, index=index, plan_digest=plan * 32, query_digest=query * 32))
    return entry.answer, entry.committed


RUN, INDEX = st.sampled_from("rs"), st.integers(0, 1)
SOME = st.sampled_from([b"1", b"2"])
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("reserve"), RUN, INDEX, st.sampled_from([b"p", b"p", b"x"]), SOME),
        st.tuples(st.just("keep"), RUN, INDEX, SOME),
        st.tuples(st.just("survivors"), RUN, INDEX, st.sampled_from([frozenset({0, 1}), frozenset({1, 2})])),
        st.tuples(st.just("unmask"), RUN, INDEX),
        st.tuples(st.just("commit"), RUN, INDEX),
        st.tuples(st.just("commit_before"), RUN, st.integers(0, 2)),
        st.tuples(st.just("sample_key"), RUN, st.just("draw"), SOME.map(lambda byte: byte * 32)),
        st.tuples(st.just("forget"), RUN),
    ),
    max_size=25,
)


@given(operations=OPERATIONS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_sequence_of_operations_does_what_the_rules_say(operations, tmp_path):
    path = tmp_path / f"{next(FILES)}.db"
    ledger, model = Ledger(path, durable=False), Model()
    heads = [ledger.verify()]
    for name, *arguments in operations:
        try:
            got = _reserve(ledger, *arguments) if name == "reserve" else getattr(ledger, name)(*arguments)
        except (RefusedError, InternalError):
            got = "refused"
        assert got == getattr(model, name)(*arguments), name
        heads.append(ledger.verify())
    entries = {(entry.run, entry.index): entry for entry in Ledger(path).entries()}
    assert set(entries) == set(model.queries)
    for place, entry in entries.items():
        assert (entry.answer, entry.survivors) == (model.answers.get(place), model.sums.get(place))
        assert (entry.committed, entry.plan_digest[:1]) == (place in model.closed, model.plans[place[0]])
        assert entry.unmasked == (place in model.opened)
    # Whatever head was noted on the way, everything that it stood for is still there.
    for head in heads:
        assert ledger.verify(head.chain) == heads[-1]
    assert [head.events for head in heads] == sorted(head.events for head in heads)


FILES = itertools.count()


def _reads(monkeypatch):
    """Numbers of events that were read from files since."""
    read, numbers = Log.read, []

    def counted(log, database, path):
        numbers.append(0)
        for event in read(log, database, path):
            numbers[-1] += 1
            yield event

    monkeypatch.setattr(Log, "read", counted)
    return numbers


def test_a_ledger_that_nobody_else_writes_is_not_read_again(ledger, path, monkeypatch):
    ledger.reserve(**reservation())
    numbers = _reads(monkeypatch)
    ledger.keep("r", 0, ANSWER)
    ledger.survivors("r", 0, {1, 2})
    ledger.commit("r", 0)
    assert ledger.head().events == 4
    assert numbers == []
    assert ledger.entries() == Ledger(path).entries()


def test_what_another_process_wrote_is_read(ledger, path):
    ledger.reserve(**reservation())
    Ledger(path).reserve(**reservation(index=1))
    assert [entry.index for entry in ledger.entries()] == [0, 1]
    ledger.reserve(**reservation(index=2))
    assert Ledger(path).verify() == ledger.head()


def test_an_edit_past_the_database_changes_nothing_in_this_process_and_stops_the_next(ledger, path):
    ledger.reserve(**reservation())
    data = path.read_bytes()
    assert data.count(b'"scale":20.0') == 1
    path.write_bytes(data.replace(b'"scale":20.0', b'"scale":90.0'))
    assert ledger.releases() == (RELEASE,)
    for read_again in (ledger.verify, lambda: Ledger(path)):
        with pytest.raises(LedgerError, match="event 1"):
            read_again()


def test_an_event_that_was_undone_is_not_in_memory(ledger, path, monkeypatch):
    ledger.reserve(**reservation())
    charge = Log.charge

    def fails(*of):
        charge(*of)
        raise InternalError("after the event")

    monkeypatch.setattr(Log, "charge", fails)
    with pytest.raises(InternalError, match="event"):
        ledger.reserve(**reservation(index=1))
    monkeypatch.undo()
    assert [entry.index for entry in ledger.entries()] == [0]
    assert ledger.head() == Ledger(path).head()


def test_an_older_copy_in_the_place_of_the_file_is_seen(ledger, path, tmp_path):
    ledger.reserve(**reservation())
    ledger.copy(tmp_path / "older")
    ledger.reserve(**reservation(index=1))
    (tmp_path / "older").replace(path)
    assert [entry.index for entry in ledger.entries()] == [0]
