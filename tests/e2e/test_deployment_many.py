"""More hospitals than three, forks of one process (`laboratory/nodes`): over a slow line, and with one that fails."""

import sys

import pytest

from simulations.laboratory.nodes.federation import Nodes
from simulations.laboratory.nodes.line import Line
from tests.support.deployed import SMALL
from tests.support.runs import read

pytestmark = pytest.mark.deployment

COUNT = 6
FEW_AWAY = ("federation.max_dropouts=1", "federation.timeout=30")


@pytest.fixture(scope="module")
def slow():
    return Line()


@pytest.fixture(scope="module")
def nodes(tmp_path_factory, slow):
    with Nodes(tmp_path_factory.mktemp("n") / "n", COUNT, line=slow) as made:
        for number in range(COUNT):
            made.set(number, lifetime_epsilon="null")  # two runs of ε = 8
        made.up()
        yield made


def done(nodes, name, *overrides):
    nodes.begin(name, "privacy.epsilon=8", *SMALL, *overrides)
    code, output = nodes.finish(name)
    sys.stdout.write(output)
    assert code == 0
    return nodes.here / "runs" / name


def test_a_run_over_a_slow_line_asks_every_hospital_each_question_once(nodes, slow):
    slow.delay, slow.rate = 0.02, 10e6 / 8
    assert read(done(nodes, "slow"), "run.json")["status"] == "complete"
    for number in range(COUNT):
        assert [request for request, _ in nodes.requests(number, "slow")] == [
            "Open",
            "AskShares",
            *2 * ["Ask", "AskAgree", "AskUnmask"],
            "Close",
        ]
    slow.delay, slow.rate = 0.0, None


def test_a_hospital_that_fails_is_done_without_where_the_plan_says_so(nodes):
    nodes.kill(COUNT - 1)
    assert read(done(nodes, "without", *FEW_AWAY), "run.json")["status"] == "complete"
    assert nodes.requests(COUNT - 1, "without") == []
