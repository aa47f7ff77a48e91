"""What holds for every test process: one thread, files in memory, and coverage only where it counts."""

import copy
import os
import shutil
import tempfile
from pathlib import Path

import coverage
import pytest
from omegaconf import OmegaConf

# Tests fork, and a fork of a process with a pool of threads can wait forever.
os.environ["OMP_NUM_THREADS"] = "1"

# A run writes through to the disk a hundred times, and each time waits for it longer than it works.
MEMORY = Path("/dev/shm")
if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None

SOURCE = "run:source"  # in coverage's configuration, in pyproject.toml


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """Coverage of a folder is that by its own tests: what only another test passes by is not tested.

    The tracer makes all Python, ours and the libraries', up to twice as slow, and rests during the other tests.
    """
    measured = coverage.Coverage.current()
    if measured is None or item.nodeid.startswith(tuple(f"tests/{source}/" for source in measured.get_option(SOURCE))):
        return (yield)
    measured.stop()
    try:
        return (yield)
    finally:
        measured.start()


@pytest.fixture(scope="session", autouse=True)
def parsed_once():
    """Hydra parses all our YAML again at each composition, of which there are a thousand: a quarter of its time."""
    real, parsed = OmegaConf.load, {}

    def load(file):
        if not hasattr(file, "read"):
            return real(file)
        text = file.read()
        if text not in parsed:
            file.seek(0)
            parsed[text] = real(file)
        return copy.deepcopy(parsed[text])

    OmegaConf.load = staticmethod(load)
    yield
    OmegaConf.load = staticmethod(real)
