"""Hospitals without a daemon: a job that answers what is there, and ends once no message comes."""

import json
import tempfile
import time
from pathlib import Path

import pytest

from simulations.laboratory.nodes.deployment import text, wait
from tests.support.deployed import SMALL, Deployment, party
from tests.support.faults import EXACT, measured
from tests.support.runs import lines

pytestmark = pytest.mark.deployment

IDLE = 45


def night(deployed, *words, nights, code):
    """The coordinator's command waits for the hospitals, which are started and end by themselves: their last lines."""
    run = deployed.start("run-nightly", "caucus-coordinator", words[0], deployed.here, "nightly", *words[1:], "--wait")
    log = deployed.here / "runs" / "nightly" / "run.log"
    wait(lambda: text(log).count("0 of 2 hospitals are connected") == nights, "a run that waits")
    deployed.up(options=("--until-idle", f"{IDLE}s"))
    assert run.wait(400) == code
    started = time.monotonic()
    jobs = [deployed.running.pop(f"h{number}") for number in range(deployed.count)]
    assert [job.wait(IDLE + 60) for job in jobs] == [0, 0]
    measured("the run's end until both jobs have ended", started)
    assert not any(json.loads(party("status", deployed.at(number), "--json"))["processes"] for number in (0, 1))
    return [text(deployed.folder / f"h{number}.out").splitlines()[-1] for number in range(deployed.count)]


def test_a_run_that_waits_for_a_person_is_done_in_the_second_night():
    folder = Path(tempfile.mkdtemp(prefix="caucus-"))
    deployed = Deployment(folder, 2)
    try:
        deployed.without_noise()
        deployed.set(1, approval="manual")
        ended = f"ended, as no message of the coordinator came for {IDLE}s; plans that await approval:"
        last = night(deployed, "run", *SMALL, EXACT, nights=1, code=1)
        assert last == [f"Hospital 0: {ended} 0", f"Hospital 1: {ended} 1"]
        party("approve", deployed.at(1), "--yes")
        last = night(deployed, "resume", nights=2, code=0)
        assert last == [f"Hospital 0: {ended} 0", f"Hospital 1: {ended} 0"]
        assert len(lines(deployed.result("nightly"), "synthetic.jsonl")) == 60
    finally:
        deployed.close()
