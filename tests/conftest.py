"""What holds for every test process: one thread, files in memory, and coverage only where it counts."""

import gc
import os
import pickle
import shutil
import tempfile
from importlib import import_module
from pathlib import Path

import coverage
import pytest
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf

from server import configuration
from server.setting_checks import SEARCH_PATH

# Tests fork, and a fork of a process with a pool of threads can wait forever.
os.environ["OMP_NUM_THREADS"] = "1"

# A run writes through to the disk a hundred times, and each time waits for it longer than it works.
MEMORY = Path("/dev/shm")
if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None

SOURCE = "run:source"  # in coverage's configuration, in pyproject.toml


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Imports are neither searched for garbage nor measured, but for what coverage counts: half of what they take."""
    gc.disable()
    measured = coverage.Coverage.current()
    if session.config.pluginmanager.hasplugin("dsession"):  # the process that hands tests to others imports none
        measured = None
    if measured:
        for file in (file for source in measured.get_option(SOURCE) for file in Path(source).rglob("[!_]*.py")):
            import_module(".".join(file.with_suffix("").parts))
        measured.stop()
    try:
        return (yield)
    finally:
        if measured:
            measured.start()
        gc.collect()
        gc.freeze()
        gc.enable()


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
def composed_once():
    """Hydra parses all our YAML again at each composition, of which there are a thousand, many of them equal."""
    load, compose = OmegaConf.load, configuration._composed
    parsed, made = {}, {}

    def load_once(file):
        if not hasattr(file, "read"):
            return load(file)
        text = file.read()
        if text not in parsed:
            file.seek(0)
            parsed[text] = pickle.dumps(load(file))
        return pickle.loads(parsed[text])

    def compose_once(overrides, config_name):
        if GlobalHydra.instance().is_initialized() or any(SEARCH_PATH in override for override in overrides):
            return compose(overrides, config_name)  # from folders of its own
        key = (config_name, *overrides)
        if key not in made:
            made[key] = pickle.dumps(compose(overrides, config_name))
        return pickle.loads(made[key])

    OmegaConf.load, configuration._composed = staticmethod(load_once), compose_once
    yield
    OmegaConf.load, configuration._composed = staticmethod(load), compose
