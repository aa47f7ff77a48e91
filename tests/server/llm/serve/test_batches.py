import logging
import threading
from concurrent.futures import CancelledError

import pytest

from common.errors import ProviderError
from server.llm.engines.base import Job
from server.llm.serve.model import MOST, Batches

WAIT_S = 60  # for what hangs


def job(seed):
    return Job(ids=(1, 2), seed=seed, max_new_tokens=8, temperature=1.0)


class Held:
    """An engine that answers a job with its seed, each batch once it may, the longest first."""

    def __init__(self):
        self.seen, self.begun, self.may = [], threading.Semaphore(0), threading.Semaphore(0)

    def sample(self, jobs, done):
        self.seen.append([one.seed for one in jobs])
        self.begun.release()
        assert self.may.acquire(timeout=WAIT_S)
        if any(one.seed < 0 for one in jobs):
            raise ProviderError("no memory")
        for place in reversed(range(len(jobs))):
            done(place, [[jobs[place].seed]])


@pytest.fixture
def engine():
    return Held()


@pytest.fixture
def busy(engine):
    """Batches whose engine works on job 0 until it may go on."""
    made = Batches(engine)
    made.first = made.submit(job(0))
    assert engine.begun.acquire(timeout=WAIT_S)
    return made


def test_what_comes_while_the_engine_works_is_one_bounded_batch_and_each_gets_its_own(engine, busy):
    assert not busy.first.cancel()
    replies = [busy.submit(job(seed)) for seed in range(MOST + 3)]
    engine.may.release(3)
    assert [reply.result(WAIT_S) for reply in replies] == [[seed] for seed in range(MOST + 3)]
    assert [len(seeds) for seeds in engine.seen] == [1, MOST, 3]


def test_a_job_whose_client_left_while_it_waited_is_not_computed(engine, busy):
    gone, alone = busy.submit(job(1)), busy.submit(job(2))
    assert gone.cancel()
    engine.may.release(2)
    assert alone.result(WAIT_S) == [2]
    assert engine.seen == [[0], [2]]
    with pytest.raises(CancelledError):
        gone.result(WAIT_S)


def test_a_failed_batch_fails_whole_and_the_next_one_is_computed(engine, busy, caplog):
    failing = [busy.submit(job(seed)) for seed in (1, -1)]
    engine.may.release(3)
    with caplog.at_level(logging.WARNING):
        for reply in failing:
            with pytest.raises(ProviderError):
                reply.result(WAIT_S)
    assert "2 jobs" in caplog.text
    assert busy.submit(job(3)).result(WAIT_S) == [3]


def test_a_failure_after_some_answers_keeps_these():
    class Breaks:
        def sample(self, jobs, done):
            done(0, [[7]])
            raise RuntimeError("a prompt")

    made = Batches(Breaks())
    replies = [made.submit(job(0)), made.submit(job(1))]
    assert replies[0].result(WAIT_S) == [7]
    if replies[1].exception(WAIT_S) is None:  # each was a batch of its own
        assert replies[1].result() == [7]
