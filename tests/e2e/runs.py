"""Small complete runs for the tests: whole federations in about half a second each."""

import functools
import json
import os
import signal
import tempfile
from pathlib import Path

from server.app import composed, load
from simulations.run import simulate

SMALL = (
    "method.samples=60",
    "method.rounds=3",
    "method.top=3",
    "method.shots=4",
    "task=demo_notes",
    "task.records_per_party=16",
    "task.test_records=24",
    "task.public_notes=120",
)


def settings(*overrides):
    """A small run's configuration; a later override beats an earlier one, and another task drops the demo's sizes."""
    own_task = any(override.startswith("task=") for override in overrides)
    small = [setting for setting in SMALL if not (own_task and setting.startswith("task"))]
    named = {override.split("=")[0].lstrip("+~") for override in overrides}
    return composed([*(setting for setting in small if setting.split("=")[0] not in named), *overrides])


def tiny(folder, *overrides):
    """Run one in this process and return its folder."""
    simulate(settings(*overrides), Path(folder))
    return Path(folder)


def resume(folder):
    """Go on with one."""
    simulate(load(folder), folder)


def lines(folder, name):
    return [json.loads(line) for line in (folder / name).read_text("utf-8").splitlines()]


def texts(folder):
    return (folder / "synthetic.jsonl").read_bytes()


def read(folder, name):
    return json.loads((folder / name).read_text("utf-8"))


@functools.cache
def warm():
    """What is loaded at first use is loaded now, once for all children."""
    with tempfile.TemporaryDirectory() as folder:
        tiny(folder)


def forked(work):
    """Run `work` in a child of this process and return how it ended: its exit code, or minus the signal."""
    warm()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def die():
    """What `kill -9` and a power cut do: no handler runs, nothing is flushed."""
    os.kill(os.getpid(), signal.SIGKILL)
