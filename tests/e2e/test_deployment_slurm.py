"""On a cluster of Slurm: a hospital by the job file that users have, and a sweep by Hydra's launcher for clusters."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from simulations.laboratory.nodes.deployment import text, wait
from tests.support import slurm
from tests.support.deployed import BIN, ROOT, SMALL, Deployment
from tests.support.faults import EXACT
from tests.support.runs import read

pytestmark = pytest.mark.deployment

JOB = ROOT / "configs" / "deployment" / "caucus-party.sbatch"


@pytest.fixture(scope="module")
def cluster():
    if reason := slurm.missing():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder, slurm.cluster(Path(folder)) as environment:
        path = ":".join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        yield environment | {"PYTHONPATH": path, "PATH": f"{BIN}:{os.environ['PATH']}"}


def submitted(cluster, script, *arguments):
    return slurm.said(cluster, "sbatch", "--parsable", script, *arguments).strip()


def ended(cluster, number):
    wait(lambda: slurm.job(cluster, number)[0] not in {"PENDING", "RUNNING", "COMPLETING"}, "the end of the job")
    return slurm.job(cluster, number)


def test_a_hospital_answers_by_a_job_that_ends_and_is_never_there_twice(cluster):
    deployed = Deployment(Path(tempfile.mkdtemp(prefix="caucus-")), 2)
    try:
        deployed.without_noise()
        script = deployed.folder / "caucus-party.sbatch"
        quick = JOB.read_text().replace("$HOME/caucus/bin", str(BIN)).replace("30m", "45s")
        script.write_text(quick.replace("%x-%j", f"{deployed.folder}/%x-%j"))
        deployed.up(0)
        run = deployed.start("run-job", "caucus-coordinator", "run", deployed.here, "job", *SMALL, EXACT, "--wait")
        log = deployed.here / "runs" / "job" / "run.log"
        wait(lambda: "1 of 2 hospitals are connected" in text(log), "a run that waits")
        first, second = (submitted(cluster, script, deployed.at(1)) for _ in range(2))
        assert run.wait(400) == 0
        assert slurm.job(cluster, first)[0] == "RUNNING"
        assert slurm.job(cluster, second)[0] == "PENDING"
        assert ended(cluster, first) == ("COMPLETED", "0:0")
        *_, last = text(deployed.folder / f"caucus-party-{first}.log").splitlines()
        assert last.startswith("Hospital 1: ended")
        wait(lambda: "relay started" in text(deployed.folder / f"caucus-party-{second}.log"), "the second job")
        slurm.said(cluster, "scancel", second)
        assert ended(cluster, second)[0] == "CANCELLED"
        assert not text(deployed.at(1) / "run" / "service.json")
    finally:
        deployed.close()


def test_a_sweep_on_the_cluster_is_whole(cluster, tmp_path):
    arguments = [*SMALL, "privacy.epsilon=1,4", f"hydra.sweep.dir={tmp_path}/sweep", "hydra/launcher=submitit_slurm"]
    limits = ["hydra.launcher.timeout_min=10", "hydra.launcher.cpus_per_task=1", "hydra.launcher.mem_gb=2"]
    subprocess.run([BIN / "caucus-simulate", "--multirun", *arguments, *limits], env=cluster, check=True, timeout=400)
    epsilons = [read(tmp_path / "sweep" / name, "privacy.json")["epsilon"] for name in "01"]
    assert epsilons == [1.0, 4.0]
    assert len(read(tmp_path / "sweep", "table.json")["rows"]) == 2
