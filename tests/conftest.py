"""What holds for every test process: one thread, files in memory, and coverage only where it counts."""

import os
import shutil
import tempfile
from pathlib import Path

import coverage
import pytest

# Tests fork, and a fork of a process with a pool of threads can wait forever.
os.environ["OMP_NUM_THREADS"] = "1"

# A run writes through to the disk a hundred times, and each time waits for it longer than it works.
MEMORY = Path("/dev/shm")
if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None

COUNTED = ("tests/common/", "tests/server/planning/")
"""Tests of the pages whose coverage is measured: what only another test passes by is not tested."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """The tracer makes all Python, ours and the libraries', up to twice as slow: it runs for the tests that count."""
    measured = coverage.Coverage.current()
    if measured is None or item.nodeid.startswith(COUNTED):
        return (yield)
    measured.stop()
    try:
        return (yield)
    finally:
        measured.start()
