"""Disks that fill up in mid-run, for real: small file systems in memory under the folders that grow.

What must hold: no answer leaves uncharged, the operator reads that it is the disk, and once there is room again the run
goes on to the texts of an undisturbed one, each query charged once.
"""

import errno
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from common.ledger.ledger import Ledger
from simulations.laboratory.nodes.deployment import text, wait
from tests.support.deployed import Deployment
from tests.support.faults import EXACT, asked, measured, read_run, whole
from tests.support.runs import read

pytestmark = [
    pytest.mark.deployment,
    pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="only root can mount a small disk"),
]

SIZE = "24m"


def small_disk(folder):
    """Put the folder and what it holds on a disk of its own."""
    kept = folder.rename(folder.with_name(f"{folder.name}.kept"))
    folder.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=0700", "caucus", folder], check=True)
    shutil.copytree(kept, folder, dirs_exist_ok=True)
    shutil.rmtree(kept)


def fill(folder):
    """Leave no byte; the file that takes the room."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError as error:
            assert error.errno == errno.ENOSPC  # noqa: PT017 this is no assertion about the product
    return filler


@pytest.fixture(scope="module")
def deployed():
    made = Deployment(Path(tempfile.mkdtemp(prefix="caucus-")))
    small = [made.at(2) / "private", made.here / "runs", made.here / "flower"]
    try:
        made.down("coordinator")
        small[-1].mkdir()
        for folder in small:
            small_disk(folder)
        for file in made.here.glob("superlink.db*"):
            shutil.move(file, small[-1])
        (made.here / "superlink.db").symlink_to("flower/superlink.db")
        made.serve()
        made.without_noise()
        made.up()
        yield made
    finally:
        made.close()
        for folder in small:
            subprocess.run(["umount", "-l", folder], check=False)
        shutil.rmtree(made.folder, ignore_errors=True)


def filled(deployed, run, number, after, folder):
    """A run whose disk fills up once that hospital has answered that request: the filler and the operator's line."""
    deployed.begin(run, EXACT, "federation.timeout=60")
    asked(deployed, number, run, after)
    filler, full = fill(folder), time.monotonic()
    code, output = deployed.finish(run)
    line = output.splitlines()[-1]
    measured(f"disk full, {run}: {'noticed' if code else 'nothing lost'}", full, line)
    assert "resume" in line if code else "next: " in line
    return filler, line


def whole_again(deployed, run, filler, undisturbed):
    filler.unlink()
    freed = time.monotonic()
    wait(lambda: deployed.online() == 3, "the nodes are online")
    if read(deployed.here / "runs" / run, "run.json")["status"] != "complete":
        deployed.resume(run)
    measured(f"disk full, {run}: room again, resumed, whole", freed)
    whole(deployed, run, undisturbed)


@pytest.mark.parametrize(("after", "charges"), [("AskShares", 0), ("Ask", 1)], ids=["before votes", "before unmasking"])
def test_a_hospitals_private_folder(after, charges, deployed, undisturbed):
    name = f"hospital-{after}"
    filler, line = filled(deployed, name, 2, after, deployed.at(2) / "private")
    assert "INTERNAL" in line
    assert "is full" in text(deployed.at(2) / "logs" / "service.log")
    audit = [event for event in deployed.audit(2) if event["run"] == read_run(deployed, name)]
    answered = [event["request"] for event in audit if event["decision"] == "answered"]
    assert ("Ask" in answered) == bool(charges)  # twice where the run is opened again: then with the answer it kept
    assert "AskUnmask" not in answered
    ledger = Ledger(deployed.at(2) / "private" / "ledger.db", read_only=True)
    assert len(ledger.entries(read_run(deployed, name))) == charges
    whole_again(deployed, name, filler, undisturbed)


def test_the_coordinators_run_folders(deployed, undisturbed):
    filler, line = filled(deployed, "runs", 0, "AskShares", deployed.here / "runs")
    assert "disk" in line or "No space" in line
    whole_again(deployed, "runs", filler, undisturbed)


def test_the_coordinators_messages(deployed, undisturbed):
    """SuperLink writes into a log that keeps its size: after other runs it may have all the room that it needs."""
    filler, _ = filled(deployed, "messages", 0, "AskShares", deployed.here / "flower")
    whole_again(deployed, "messages", filler, undisturbed)
