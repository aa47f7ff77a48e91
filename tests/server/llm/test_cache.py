import multiprocessing
import sqlite3

import pytest

from common.errors import ProviderError
from server.llm.base import MODES, Provider, Reply, Request, accepted
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
            lost = request.seed in self.loses
            modes = sorted(accepted(request, self.declines).modes)
            texts = () if lost else tuple(" ".join([f"text {request.seed}.{k}", *modes]) for k in range(request.n))
            read, written = (0, 0) if lost else (7, 3)
            loss = "failed" if lost else None
            replies.append(Reply(texts=texts, input_tokens=read, output_tokens=written, loss=loss))
            if arrived is not None:
                arrived(place, replies[-1])
        return replies

    def estimate(self, request: Request) -> tuple[int, int]:
        return 7, request.n


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


def test_the_second_time_costs_nothing(path):
    first = Cached(provider=Fake(), path=path)
    replies = first.generate(requests(3))
    assert first.calls == 3
    assert first.generate(requests(3)) == replies
    assert first.calls == 3

    again = Cached(provider=Fake(), path=path)
    assert again.generate(requests(3)) == replies
    assert again.calls == 0


def test_only_what_is_missing_is_asked_and_order_is_kept(path):
    Cached(provider=Fake(), path=path).generate(requests(5)[1:4:2])
    model = Fake()
    replies = Cached(provider=model, path=path).generate(requests(5))
    assert model.asked == [0, 2, 4]
    assert [reply.texts[0] for reply in replies] == [f"text {seed}.0" for seed in range(5)]


def test_a_killed_run_keeps_what_arrived(path):
    with pytest.raises(ProviderError):
        Cached(provider=Fake(fails_at=3), path=path).generate(requests(6))
    again = Fake()
    Cached(provider=again, path=path).generate(requests(6))
    assert again.asked == [3, 4, 5]


def test_equal_requests_of_a_batch_go_once(path):
    model = Fake()
    cached = Cached(provider=model, path=path)
    arrivals = {}
    replies = cached.generate([*requests(2), *requests(2)], arrived=arrivals.__setitem__)
    assert model.asked == [0, 1]
    assert cached.calls == 2
    assert replies[:2] == replies[2:]
    assert set(arrivals) == {0, 1, 2, 3}


def test_a_lost_item_is_asked_again_and_a_refusal_is_kept(path):
    Cached(provider=Fake(loses=(1,)), path=path).generate(requests(3))
    again = Fake()
    Cached(provider=again, path=path).generate(requests(3))
    assert again.asked == [1]


def test_a_failed_reply_that_is_kept_is_final(path):
    failed, answered = requests(2)
    cached = Cached(provider=Fake(loses=(0,)), path=path)
    lost, _ = cached.generate([failed, answered])
    cached.keep(failed, lost)
    cached.keep(answered, lost)  # it has its reply already
    again = Fake()
    kept, _ = Cached(provider=again, path=path).generate([failed, answered])
    assert kept.loss == "failed"
    assert again.asked == []


def test_a_reply_comes_back_whole(path):
    class Broken(Fake):
        def generate(self, requests, *, arrived=None):
            replies = [Reply(texts=("a",), input_tokens=9, output_tokens=3, cached_tokens=4, loss="truncated")]
            arrived(0, replies[0])
            return replies

    first = Cached(provider=Broken(), path=path).generate(requests(1))
    assert Cached(provider=Fake(), path=path).generate(requests(1)) == first


def test_another_model_has_other_replies(path):
    Cached(provider=Fake("fake/1"), path=path).generate(requests(2))
    other = Cached(provider=Fake("fake/2"), path=path)
    other.generate(requests(2))
    assert other.calls == 2


def test_forecast_is_zero_for_what_is_on_disk(path):
    cached = Cached(provider=Fake(), path=path)
    known, fresh = requests(2)
    assert cached.estimate(known) == (7, 2)
    cached.generate([known])
    assert cached.estimate(known) == (0, 0)
    assert cached.estimate(fresh) == (7, 2)


def test_holds_no_prompt(path):
    Cached(provider=Fake(), path=path).generate(requests(1, good=("a secret exemplar",)))
    with sqlite3.connect(path) as database:
        stored = "".join(database.iterdump())
    database.close()
    assert "text 0.0" in stored
    assert "secret" not in stored
    assert "customer" not in stored


def test_a_file_that_is_no_cache_is_named(path):
    path.parent.mkdir()
    path.write_bytes(b"not a database, but long enough to be read as one" * 40)
    with pytest.raises(ProviderError, match=r"replies\.sqlite"):
        Cached(provider=Fake(), path=path).generate(requests(1))


def _fill(path, low):
    for seed in range(low, low + 40):
        Cached(provider=Fake(), path=path).generate([r for r in requests(80) if r.seed == seed])


def test_processes_may_share_it(path):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_fill, args=(path, low)) for low in (0, 20)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
        assert worker.exitcode == 0
    model = Fake()
    Cached(provider=model, path=path).generate(requests(60))
    assert model.asked == []


def test_a_reply_takes_little_more_than_its_texts(path):
    class Long(Fake):
        def generate(self, requests, *, arrived):
            for place, _ in enumerate(requests):
                arrived(place, Reply(texts=("x" * 1500,), input_tokens=1, output_tokens=1))
            return [Reply(texts=("x" * 1500,), input_tokens=1, output_tokens=1)] * len(requests)

    Cached(provider=Long(), path=path).generate(requests(300))
    assert path.stat().st_size < 300 * 1.6 * 1500


def test_a_reply_that_one_run_keeps_is_not_forgotten_for_another(path):
    kept, other = requests(2)
    silent = Reply(texts=(), input_tokens=1, output_tokens=1)
    Cached(provider=Fake(), path=path).keep(kept, silent)
    model = Fake()
    again = Cached(provider=model, path=path)
    again.generate([other])
    for request in (kept, other):
        again.forget(request)
    assert again.generate([kept])[0].texts == ()
    assert again.generate([other])[0].texts
    assert model.asked == [other.seed] * 2
