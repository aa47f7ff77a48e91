import contextlib
import multiprocessing
import sqlite3

import pytest

from common.errors import ProviderError
from server.llm.base import MODES, NO_REPLY, Provider, Reply, Request, accepted
from server.llm.cache import Cached
from tests.support.provider_contract import ProviderContract, requests


class Fake:
    """Writes the request's seed and modes.

    `fails_at` stops it after so many replies, `loses` names seeds that give nothing.
    """

    name = "fake"
    remote = False

    def __init__(self, identity="fake/1", fails_at=None, loses=(), declines=frozenset()):
        self.identity, self.fails_at, self.loses, self.asked = identity, fails_at, loses, []
        self.declines = declines

    def check(self):
        pass

    def generate(self, requests, *, arrived=None):
        replies = []
        for place, request in enumerate(requests):
            if place == self.fails_at:
                raise ProviderError("the fake model stops")
            self.asked.append(request.seed)
            modes = sorted(accepted(request, self.declines).modes)
            texts = tuple(" ".join([f"text {request.seed}.{k}", *modes]) for k in range(request.n))
            reply = Reply(texts=texts, input_tokens=7, output_tokens=3, cached_tokens=4)
            replies.append(NO_REPLY if request.seed in self.loses else reply)
            if arrived is not None:
                arrived(place, replies[-1])
        return replies

    def estimate(self, request: Request) -> tuple[int, int]:
        return 7, request.n


def cached(path, *asked, **changes):
    """The replies to these requests from a cache of a new model, and the seeds that the model was asked for."""
    model = Fake(**changes)
    return Cached(provider=model, path=path).generate(asked), model.asked


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new folder" / "replies.sqlite"


class TestCached(ProviderContract):
    @pytest.fixture
    def provider(self, path) -> Provider:
        return Cached(provider=Fake(), path=path)


class TestCachedThatDeclines(ProviderContract):
    declines = frozenset(MODES)

    @pytest.fixture
    def provider(self, path) -> Provider:
        return Cached(provider=Fake(declines=self.declines), path=path)


def test_the_second_time_costs_nothing_and_brings_the_reply_back_whole(path):
    first = Cached(provider=Fake(), path=path)
    replies = first.generate(requests(3))
    assert first.generate(requests(3)) == replies
    assert first.calls == 3
    assert cached(path, *requests(3)) == (replies, [])
    assert cached(path, *requests(3), identity="fake/2")[1] == [0, 1, 2]


def test_only_what_is_missing_is_asked_once_and_order_is_kept(path):
    cached(path, *requests(5)[1:4:2])
    model, arrivals = Fake(), {}
    replies = Cached(provider=model, path=path).generate([*requests(5), *requests(2)], arrived=arrivals.__setitem__)
    assert model.asked == [0, 2, 4]
    assert [reply.texts[0] for reply in replies] == [f"text {seed}.0" for seed in (*range(5), 0, 1)]
    assert [arrivals[place] for place in range(7)] == replies


def test_a_killed_run_keeps_what_arrived_and_asks_again_for_what_was_lost(path):
    with pytest.raises(ProviderError):
        cached(path, *requests(6), fails_at=3, loses=(1,))
    assert cached(path, *requests(6))[1] == [1, 3, 4, 5]


def test_a_failed_reply_that_is_kept_is_final(path):
    failed, answered = requests(2)
    first = Cached(provider=Fake(loses=(0,)), path=path)
    lost, _ = first.generate([failed, answered])
    first.keep(failed, lost)
    first.keep(answered, lost)  # it has its reply already
    (kept, _), asked = cached(path, failed, answered)
    assert (kept.loss, asked) == ("failed", [])


def test_forecast_is_zero_for_what_is_on_disk(path):
    model = Cached(provider=Fake(), path=path)
    known, fresh = requests(2)
    assert model.estimate(known) == (7, 2)
    model.generate([known])
    assert (model.estimate(known), model.estimate(fresh)) == ((0, 0), (7, 2))


def test_holds_no_prompt(path):
    cached(path, *requests(1, good=("a secret exemplar",)))
    with contextlib.closing(sqlite3.connect(path)) as database:
        stored = "".join(database.iterdump())
    assert "text 0.0" in stored
    assert not any(words in stored for words in ("secret", "customer"))


def test_a_file_that_is_no_cache_is_named(path):
    path.parent.mkdir()
    path.write_bytes(b"not a database, but long enough to be read as one" * 40)
    with pytest.raises(ProviderError, match=r"replies\.sqlite"):
        cached(path, *requests(1))


def _fill(path, low):
    for seed in range(low, low + 40):
        cached(path, requests(80)[seed])


def test_processes_may_share_it(path):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_fill, args=(path, low)) for low in (0, 20)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
        assert worker.exitcode == 0
    assert cached(path, *requests(60))[1] == []


def test_a_reply_that_one_run_keeps_is_not_forgotten_for_another(path):
    kept, other = requests(2)
    Cached(provider=Fake(), path=path).keep(kept, Reply(texts=(), input_tokens=1, output_tokens=1))
    cached(path, other)
    again = Cached(provider=Fake(), path=path)
    for request in (kept, other):
        again.forget(request)
    (silent, written), asked = cached(path, kept, other)
    assert (silent.texts, bool(written.texts), asked) == ((), True, [other.seed])
