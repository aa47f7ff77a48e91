"""Which texts the tools keep as what the same models write without the hospitals."""

import numpy as np
import pytest

from server.llm.base import Request
from server.llm.orders import Order
from server.llm.spending import Spending
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
