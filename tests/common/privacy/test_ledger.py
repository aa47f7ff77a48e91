import concurrent.futures
import dataclasses
import math
import multiprocessing
import sqlite3
import stat

import pytest

from common.errors import InternalError, RefusedError
from common.privacy import accountant
from common.privacy.accountant import Release
from common.privacy.ledger import Ledger

RELEASE = Release(shifts=(1, 2, 1, 2), sigma=20.0, shares=3, records=1)
ANSWER, OTHER = bytes(range(64)), bytes(range(64, 128))
DELTA = 1e-5


def _ask(**changes):
    return {
        "run": "r", "index": 0, "plan_digest": b"p" * 32, "query_digest": b"q" * 32, "release": RELEASE, **changes,
    }  # fmt: skip


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path):
    return Ledger(path)


def test_the_same_query_again_gets_the_kept_answer_and_costs_nothing(ledger, path):
    ledger.reserve(**_ask())
    cost = ledger.total(DELTA)
    assert ledger.keep("r", 0, ANSWER) == ANSWER
    again = Ledger(path).reserve(**_ask())
    assert again.answer == ANSWER
    assert Ledger(path).keep("r", 0, OTHER) == ANSWER
    assert ledger.total(DELTA) == cost
    assert ledger.entries() == (again,)


@pytest.mark.parametrize(
    "changes",
    [
        {"query_digest": b"x" * 32},
        {"plan_digest": b"x" * 32},
        {"release": dataclasses.replace(RELEASE, sigma=21.0)},
        {"plan_digest": b"x" * 32, "index": 1},
    ],
)
def test_another_query_or_another_plan_is_refused_and_not_charged(ledger, changes):
    first = ledger.reserve(**_ask())
    with pytest.raises(RefusedError):
        ledger.reserve(**_ask(**changes))
    assert ledger.entries() == (first,)


def test_commit_erases_the_answer_from_the_disk_and_closes_it(ledger, path):
    ledger.reserve(**_ask())
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
    assert ledger.reserve(**_ask()) == entry


def test_one_set_of_survivors(ledger):
    ledger.reserve(**_ask())
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


def test_no_survivors_after_an_entry_was_closed_without(ledger):
    ledger.reserve(**_ask())
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


def test_total_composes_all_entries_whether_committed_or_not(ledger):
    assert ledger.total(DELTA) == 0
    for index in range(3):
        ledger.reserve(**_ask(index=index))
    ledger.commit("r", 1)
    ledger.reserve(**_ask(run="s", plan_digest=b"x" * 32))
    assert ledger.total(DELTA, run="r") == accountant.epsilon([dataclasses.replace(RELEASE, times=3)], DELTA)
    assert ledger.total(DELTA) == accountant.epsilon([dataclasses.replace(RELEASE, times=4)], DELTA)
    assert ledger.total(DELTA, run="nobody") == 0
    assert [(entry.run, entry.index) for entry in ledger.entries()] == [("r", 0), ("r", 1), ("r", 2), ("s", 0)]
    ledger.reserve(**_ask(run="open", release=dataclasses.replace(RELEASE, sigma=0.0)))
    assert ledger.total(DELTA) == math.inf


def test_the_answer_is_not_shown(ledger):
    ledger.reserve(**_ask())
    ledger.keep("r", 0, ANSWER)
    assert repr(ANSWER)[2:-1] not in repr(ledger.entries())


def test_the_file_is_its_owners_alone(ledger, path):
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    Ledger(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM entries",
        "UPDATE entries SET run = 'x'",
        "UPDATE entries SET position = 7",
        "UPDATE entries SET plan_digest = x'00'",
        "UPDATE entries SET query_digest = x'00'",
        "UPDATE entries SET release = '{}'",
        "UPDATE entries SET answer = x'00'",
        "UPDATE entries SET survivors = '[]'",
        "UPDATE entries SET committed = 0",
    ],
)
def test_the_database_itself_refuses_to_rewrite(ledger, path, statement):
    ledger.reserve(**_ask())
    ledger.survivors("r", 0, {0, 1})
    ledger.commit("r", 0)
    database = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        database.execute(statement)
    database.close()


def test_a_failed_transaction_leaves_nothing(ledger, monkeypatch):
    monkeypatch.setattr("common.privacy.ledger.json.dumps", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        ledger.reserve(**_ask())
    assert ledger.entries() == ()


def _keep(path, index, answer):
    ledger = Ledger(path)
    ledger.reserve(**_ask(index=index))
    return ledger.keep("r", index, answer)


@pytest.mark.parametrize("processes", [False, True])
def test_concurrent_writers_agree_on_one_answer_for_each_entry(path, processes):
    pool = (
        concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("forkserver"))
        if processes
        else concurrent.futures.ThreadPoolExecutor(6)
    )
    keys = [bytes([i]) * 32 for i in range(6)]
    with pool:
        got = [pool.submit(_keep, path, index, key) for key in keys for index in range(2)]
        results = [future.result() for future in got]
    assert len(set(results[0::2])) == len(set(results[1::2])) == 1
    assert len(Ledger(path).entries()) == 2
