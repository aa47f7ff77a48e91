"""A census is taken of real nodes once; further texts are written from it when nobody can be reached any more."""

import pytest

from common.ledger.ledger import Ledger
from tests.support.deployed import running
from tests.support.runs import SMALL, WASP, lines, read

pytestmark = pytest.mark.deployment

OVERRIDES = [setting for setting in SMALL if setting not in WASP]


def test_a_census_outlives_the_federation():
    with running() as deployed:
        method = ("method=census", "method.directions=6", "privacy.epsilon=4")
        deployed.coordinator("run", "--yes", deployed.here, "first", *OVERRIDES, *method, timeout=400)
        first = deployed.result("first")
        (line,) = [line for line in lines(first, "rounds.jsonl") if line["queries"]]
        assert (line["round"], [query["name"] for query in line["queries"]]) == (1, ["class sums"])
        charged = [len(Ledger(deployed.ledger(number)).entries()) for number in range(3)]
        for key in ("h0", "h1", "h2", "coordinator"):
            deployed.down(key)
        output = deployed.coordinator("steer", first, "method.samples=24", "llm.use=[narrow]", timeout=400)
        further = deployed.result("first-steered")
        origin = read(first, "run.json")["run"]
        assert f"run {origin}, epsilon 4" in output
        assert {line["model"] for line in lines(further, "synthetic.jsonl")} == {"narrow"}
        privacy, before = read(further, "privacy.json"), read(first, "privacy.json")
        assert (privacy["epsilon"], privacy["earlier"]["run"]) == (4.0, origin)
        assert privacy["not_covered"] == before["not_covered"]
        assert [len(Ledger(deployed.ledger(number)).entries()) for number in range(3)] == charged == [1, 1, 1]
