"""Nodes that go, come back, or take their time; and hospitals that write texts of their own."""

import time

import pytest

from simulations.laboratory.nodes.deployment import text
from tests.support.deployed import SMALL
from tests.support.faults import EXACT, asked, charges, measured, read_run, restarted, whole
from tests.support.runs import lines, read

pytestmark = pytest.mark.deployment

MAY_LOSE_ONE = ("federation.max_dropouts=1", "secagg.corrupt=0.0")
"""Two of three cannot outvote a corrupt third: all three would have to sign."""


def paid(deployed, number, run):
    return charges(deployed.ledger(number), read_run(deployed, run))


def test_a_hospital_that_is_gone_for_good_ends_a_run_that_needs_it_and_no_other(deployed, undisturbed):
    deployed.begin("needed", EXACT, "federation.timeout=60")
    asked(deployed, 2, "needed", "AskShares")
    deployed.down("h2")
    gone = time.monotonic()
    code, output = deployed.finish("needed")
    assert code == 1
    line = output.splitlines()[-1]
    assert "got 2 (Hospital 2" in line
    assert "2 of 3 hospitals" in output
    measured("hospital gone for good, the plan needs all", gone, line)

    started = time.monotonic()
    deployed.run("without", EXACT, "federation.timeout=20", *MAY_LOSE_ONE)
    measured("run that may lose one, begun without it", started)
    assert read(deployed.result("without"), "run.json")["status"] == "complete"
    assert paid(deployed, 2, "without") == []
    for number in (0, 1):
        assert paid(deployed, number, "without") == [(0, True), (1, True)]

    deployed.up(2)
    started = time.monotonic()
    deployed.resume("needed")
    measured("it came back after all: resumed", started)
    whole(deployed, "needed", undisturbed)


def test_a_hospital_that_goes_in_mid_run_is_done_without_where_the_plan_says_so(deployed):
    deployed.begin("spared", EXACT, "federation.timeout=30", *MAY_LOSE_ONE)
    asked(deployed, 2, "spared", "AskShares")
    vanished = deployed.running.pop("h2")
    vanished.kill()  # as a machine without power: the kernel ends its children, and nobody says farewell
    vanished.wait()
    gone = time.monotonic()
    code, output = deployed.finish("spared")
    measured("hospital gone for good, the plan can do without", gone, output.splitlines()[-1])
    assert code == 0
    assert [query["survivors"] for row in lines(deployed.result("spared"), "rounds.jsonl") for query in row["queries"]]
    for number in (0, 1):
        assert paid(deployed, number, "spared") == [(0, True), (1, True)]
    deployed.up(2)


def test_a_hospital_fine_tunes_where_its_own_file_says_so_and_not_elsewhere(deployed):
    dp_sgd = (
        *("method=dp_sgd", "method.samples=6", "method.rounds=1", "method.steps=3", "method.rate=1.0"),
        *("method.batch=16", "method.max_tokens=32", "federation.timeout=60"),
        *(setting for setting in SMALL if setting.startswith("task.")),
    )
    for number in (0, 1):
        deployed.set(number, fine_tuning="{}")
        restarted(deployed, number)
    output = deployed.coordinator("run", "--yes", deployed.here, "tuned", *dp_sgd, code=1)
    assert "refused: OVER_LIMIT" in output.splitlines()[-1]
    assert "expected fine_tuning" in text(deployed.at(2) / "logs" / "service.log")
    deployed.set(2, fine_tuning="{}")
    restarted(deployed, 2)
    started = time.monotonic()
    deployed.resume("tuned")
    measured("DP-SGD at three hospitals", started)
    rows = lines(deployed.result("tuned"), "synthetic.jsonl")
    assert {row["model"] for row in rows} == {"dp_sgd"}
    for number in range(3):
        assert paid(deployed, number, "tuned") == [(0, True)]
