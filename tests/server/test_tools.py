"""What the tools keep as texts that the same models write without the hospitals, and what they say of progress."""

import numpy as np
import pytest
from tqdm import tqdm

from server import tools as tools_module
from server.llm.base import Reply, Request
from server.llm.orders import Order
from server.llm.spending import Price, Spending, Usage
from server.tools import RunTools
from tests.support.direct_federation import TASK, Encoder, World
from tests.support.method_contract import Echo

VOTES = "nearest and furthest votes"


@pytest.fixture
def tools(tmp_path):
    world = World(tmp_path)
    return RunTools(
        task=TASK,
        plan=world.plan,
        federation=world.coordinator(),
        encoder=Encoder(),
        providers={"m": Echo("m", silent=False)},
        texts_per_request=2,
        spending=Spending(),
        experiment_seed=0,
    )


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


def test_slow_work_has_a_line_every_half_minute_with_speed_losses_and_time_left(caplog):
    slow = [(at, reply(at % 20 > 0)) for at in range(10, 90, 10)]
    assert told(caplog, slow) == [
        "texts: 2 of 10 texts, 6 tokens/s, 1 replies without texts, about 02:00 left",
        "texts: 3 of 10 texts, 6 tokens/s, 3 replies without texts, about 02:20 left",
    ]


def test_quick_work_has_no_line(caplog):
    assert told(caplog, [(at, reply(1)) for at in range(10)]) == []


def test_replies_of_the_cache_have_no_speed_and_no_time_left(caplog):
    assert told(caplog, [(31, reply(2, prompt=""))]) == ["texts: 2 of 10 texts"]


def test_at_the_end_no_time_is_left(caplog):
    assert told(caplog, [(60, reply(10))]) == ["texts: 10 of 10 texts, 1 tokens/s"]


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
