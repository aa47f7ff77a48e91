"""Machines whose clocks are wrong, over real nodes: who gets in, what the operators read, and that nothing is lost.

Every process of a machine gets its clock shifted, certificates included, by a library that each Python puts before the
C library's functions as it starts. Only the time of day moves: waits are measured by another clock, as they are where
someone sets a machine's clock. (libfaketime cannot do that under Python: waits fail or hang.)
"""

import re
import shutil
import subprocess
import time

import pytest

from simulations.laboratory.nodes.deployment import text, wait
from tests.support.deployed import check, party
from tests.support.faults import EXACT, measured, restarted, whole

pytestmark = [
    pytest.mark.deployment,
    pytest.mark.skipif(not shutil.which("cc"), reason="a clock is shifted by a small library in C, and there is no cc"),
]

LIBRARY = """
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t which, struct timespec *now) {
    int code = syscall(SYS_clock_gettime, which, now);
    if (code == 0 && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) now->tv_sec += SHIFT;
    return code;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *now) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now) *now = exact.tv_sec;
    return exact.tv_sec;
}
"""
STARTUP = """
import os, sys
if "LD_PRELOAD" not in os.environ:
    os.environ["LD_PRELOAD"] = {library!r}
    os.execv(sys.executable, sys.orig_argv)
"""


@pytest.fixture(scope="module")
def shifted(tmp_path_factory):
    """A folder that, first on the path of a Python, shifts its clock by so many seconds."""

    def make(seconds):
        folder = tmp_path_factory.mktemp("clock")
        (folder / "clock.c").write_text("#define _GNU_SOURCE\n" + LIBRARY)
        library = str(folder / "clock.so")
        subprocess.run(
            ["cc", "-shared", "-fPIC", f"-DSHIFT=({seconds})", "-o", library, folder / "clock.c"], check=True
        )
        (folder / "sitecustomize.py").write_text(STARTUP.format(library=library))
        return folder

    return make


def with_clock(deployed, clock):
    """Hospital 2 starts anew with this clock; where the front door's log stood before."""
    deployed.down("h2")
    stood = len(text(deployed.here / "logs" / "front_door.log"))
    (deployed.at(2) / "logs" / "supernode.log").write_text("")
    deployed.path["h2"] = (clock,)
    deployed.start("h2", "caucus-party", "start", deployed.at(2))
    return stood


@pytest.mark.parametrize(("seconds", "direction"), [(10, "ahead"), (7200, "ahead")])
def test_a_clock_that_is_ahead_by_seconds_or_hours(seconds, direction, deployed, shifted):
    clock, started = shifted(seconds), time.monotonic()
    stood = with_clock(deployed, clock)
    door = deployed.here / "logs" / "front_door.log"
    refusal = "a node is refused: its key is not enrolled, or its clock is off; clock:"
    wait(lambda: re.search(f"{refusal} \\d+ s {direction}", text(door)[stood:]), "the node is refused")
    checked = check(deployed.at(2), path=(clock,), code=1)
    measured(f"clock {abs(seconds)} s {direction}: refused", started, checked)
    assert "clock of" in checked
    assert direction in checked
    # Flower's node says nothing of it: it ends "gracefully", again and again.
    assert "caucus-party check" in party("status", deployed.at(2), path=(clock,))


def test_a_run_without_the_hospital_with_the_wrong_clock_goes_on_once_it_is_set(deployed, shifted, undisturbed):
    with_clock(deployed, shifted(7200))
    wait(lambda: deployed.online() == 2, "the node is away")
    started = time.monotonic()
    output = deployed.run("clock", EXACT, "federation.timeout=60", "--wait", code=1).splitlines()[-1]
    measured("run with a hospital 2 h ahead: ends", started, output)
    assert "Hospital 2" in output
    del deployed.path["h2"]
    restarted(deployed, 2)
    deployed.resume("clock")
    whole(deployed, "clock", undisturbed)
