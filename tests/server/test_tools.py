"""What the tools keep: texts without the hospitals, and replies that are final; and what they say of progress."""

import numpy as np
import pytest
from tqdm import tqdm

from common.errors import ProviderError
from server import tools as tools_module
from server.llm.base import LOSSES, Reply, Request
from server.llm.cache import Cached
from server.llm.orders import Order
from server.llm.spending import Price, Spending, Usage
from server.tools import RunTools
from tests.support.direct_federation import TASK, Encoder, World
from tests.support.method_contract import Echo

VOTES = "nearest and furthest votes"


def tools_of(world, **providers):
    return RunTools(
        task=TASK,
        plan=world.plan,
        federation=world.coordinator(),
        encoder=Encoder(),
        providers=providers or {"m": Echo("m", silent=False)},
        texts_per_request=2,
        spending=Spending(),
        experiment_seed=0,
    )


@pytest.fixture
def tools(tmp_path):
    return tools_of(World(tmp_path))


def written(tools, round_number=0, **fields):
    """Four texts of label a, by requests with these fields."""

    def request(order, texts, generator):
        labels = tuple(TASK.labels.items())
        seed = int(generator.integers(2**32))
        return Request(task_kind=TASK.kind, labels=labels, label=order.label, n=texts, seed=seed, **fields)

    order = Order(model="m", label="a", count=4)
    return tuple(tools.generate([order], request, round_number=round_number).candidates)


def test_zero_shot_texts_of_the_first_round_are_kept_until_the_first_answer(tools):
    first = written(tools, attribute="a topic", words=20)
    assert len(first) == 4
    assert tools.zero_shot == first
    vectors, labels = tools.embed([f"c{at}" for at in range(8)]), [0, 1] * 4
    tools.ask(VOTES, 0, vectors=vectors, labels=np.array(labels, dtype=np.int32))
    written(tools)
    assert tools.zero_shot == first


@pytest.mark.parametrize(
    "fields",
    [
        {"good": ("an exemplar",)},
        {"source": ("a text",)},
        {"abstract": True},
        {"must": ("a term",)},
        {"phrases": True},
        {"round_number": 1},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_no_text_that_was_shown_anything_or_comes_later_is_kept(fields, tools):
    assert written(tools, **fields)
    assert tools.zero_shot == ()


class Flawed(Echo):
    """A model that loses the first requests for one reason, and answers all others."""

    identity, declines = "flawed", frozenset()

    def __init__(self, loss, *, loses):
        super().__init__("m", silent=False)
        self.loss, self.loses = loss, loses

    def check(self):
        pass

    def _reply(self, request):
        reply = super()._reply(request)
        if len(self.requests) > self.loses:
            return reply
        tokens = int(self.loss not in ("failed", "filtered", "too long"))
        return Reply(texts=(), input_tokens=tokens, output_tokens=tokens, loss=self.loss)


REPLIES = tuple(LOSSES)[: list(LOSSES).index("too long") + 1]


def step(tools, fault=None):
    """A step that asks about its texts, and ends in a fault before or after it."""
    with tools.asking_again_after_errors():
        texts = [candidate.text for candidate in written(tools)]
        if isinstance(fault, ProviderError):
            raise fault
        vectors = tools.embed([f"c{at}" for at in range(8)])
        tools.ask(VOTES, 0, vectors=vectors, labels=np.array([0, 1] * 4, dtype=np.int32))
    return texts


@pytest.mark.parametrize("loss", REPLIES)
def test_a_step_that_asked_is_repeated_with_the_same_replies(loss, tmp_path):
    world = World(tmp_path)
    first, again = Flawed(loss, loses=1), Flawed(loss, loses=0)
    texts = [step(tools_of(world, m=Cached(provider=m, path=tmp_path / "replies.db"))) for m in (first, again)]
    assert texts[0] == texts[1]
    assert len(texts[0]) == 4
    assert len(first.requests) == 3
    assert again.requests == []


@pytest.mark.parametrize("loss", REPLIES)
def test_a_step_that_an_error_ended_asks_again_for_what_was_lost(loss, tmp_path):
    world = World(tmp_path)
    broken, mended = Flawed(loss, loses=10**6), Flawed(loss, loses=0)
    with pytest.raises(ProviderError):
        step(tools_of(world, m=Cached(provider=broken, path=tmp_path / "replies.db")))
    assert len(step(tools_of(world, m=Cached(provider=mended, path=tmp_path / "replies.db")))) == 4
    assert [request.seed for request in mended.requests] == [request.seed for request in broken.requests[:2]]


def test_an_error_of_the_method_itself_forgets_what_was_lost(tmp_path):
    world = World(tmp_path)
    broken, mended = Flawed("refused", loses=1), Flawed("refused", loses=0)
    with pytest.raises(ProviderError, match="for b"):
        step(tools_of(world, m=Cached(provider=broken, path=tmp_path / "replies.db")), ProviderError("none for b"))
    step(tools_of(world, m=Cached(provider=mended, path=tmp_path / "replies.db")))
    assert [request.seed for request in mended.requests] == [broken.requests[0].seed]


def test_a_model_without_a_cache_has_nothing_to_keep_or_forget(tmp_path):
    world = World(tmp_path)
    assert len(step(tools_of(world, m=Flawed("refused", loses=1)))) == 4
    with pytest.raises(ProviderError):
        step(tools_of(world, m=Flawed("refused", loses=10**6)))


class Clock:
    """Seconds that a test sets."""

    at = 0.0

    def __call__(self):
        return self.at


def told(caplog, replies, *, total=10):
    """The lines of the log for replies at these seconds."""
    caplog.set_level("INFO", logger="caucus.progress")
    clock = Clock()
    with tools_module._writing("texts", total, Spending(), now=clock) as arrived:
        for at, reply in replies:
            clock.at = at
            arrived(reply)
    return [record.getMessage() for record in caplog.records]


def reply(texts, *, prompt="p"):
    return Reply(texts=("t",) * texts, input_tokens=1, output_tokens=60, loss=None if texts else "empty", prompt=prompt)


SLOW = [(at, reply(at % 20 > 0)) for at in range(10, 90, 10)]


@pytest.mark.parametrize(
    ("replies", "facts"),
    [
        pytest.param(
            SLOW, [("2 of 10", "6 tokens/s", "1 replies", "02:00"), ("3 of 10", "3 replies", "02:20")], id="slow"
        ),
        pytest.param([(at, reply(1)) for at in range(10)], [], id="quick"),
        pytest.param([(31, reply(2, prompt=""))], [("2 of 10 texts",)], id="of the cache, without speed and time left"),
        pytest.param([(60, reply(10))], [("10 of 10", "1 tokens/s")], id="at the end, without time left"),
    ],
)
def test_work_has_a_line_every_half_minute_with_speed_losses_and_time_left(replies, facts, caplog):
    lines = told(caplog, replies)
    for line, of_line in zip(lines, facts, strict=True):
        assert [fact for fact in of_line if fact not in line] == []
    assert all(("left" in line) == (replies is SLOW) for line in lines)
    assert all(("tokens/s" in line) == bool(replies[0][1].prompt) for line in lines)


def test_on_a_terminal_the_bar_has_speed_losses_and_cost(monkeypatch, capsys, caplog):
    shown_at_once = {"disable": False, "mininterval": 0}
    monkeypatch.setattr(tools_module, "tqdm", lambda **settings: tqdm(**settings | shown_at_once))
    spending, price = Spending(), Price(as_of="today", input=1e6, output=0)
    spending.settle("m", None, Usage(input=3), price)
    caplog.set_level("INFO", logger="caucus.progress")
    clock = Clock()
    with tools_module._writing("texts", 4, spending, now=clock) as arrived:
        clock.at = 60.0
        arrived(reply(0))
        arrived(reply(2))
    shown = capsys.readouterr().err
    assert all(part in shown for part in ("2/4", "tokens/s=2", "unreadable=1", "cost=3"))
    assert not caplog.records
