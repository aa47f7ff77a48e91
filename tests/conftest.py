"""What holds for every test process: one thread, files in memory, and coverage only where it counts."""

import contextlib
import copy
import functools
import gc
import hashlib
import logging
import os
import pickle
import shutil
import tempfile
from importlib import import_module
from pathlib import Path

import coverage
import hypothesis
import pytest
from hydra import version
from hydra._internal import config_loader_impl
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import CachingConfigRepository, ConfigRepository

# What an assert in there compares is shown as in a test.
pytest.register_assert_rewrite("tests.support")

pytest_plugins = ["tests.support.chromium"]  # for its fixture

# Tests fork, and a fork of a process with a pool of threads can wait forever.
os.environ["OMP_NUM_THREADS"] = "1"

# A busy machine must not break a test.
hypothesis.settings.register_profile("without a deadline", deadline=None)
hypothesis.settings.load_profile("without a deadline")

# A run writes through to the disk a hundred times, and each time waits for it longer than it works.
MEMORY = Path("/dev/shm")
if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None

# No test leaves this machine. Else each of a thousand clients of model services reads the system's authorities, 50 ms.
os.environ["SSL_CERT_DIR"] = os.devnull
os.environ.pop("SSL_CERT_FILE", None)

SOURCE = "run:source"  # in coverage's configuration, in pyproject.toml
OURS = {"pkg://hydra.conf", "pkg://configs", "structured://"}  # where Hydra looks for settings, if told of no folder


@contextlib.contextmanager
def untraced():
    """Stop coverage's tracer within the block: it makes all Python, ours and the libraries', up to twice as slow.

    In a worker of pytest-xdist, pytest-cov starts two and saves only the second: the first is not started again.
    """
    tracers = []
    while measured := coverage.Coverage.current():
        measured.stop()
        tracers.append(measured)
    try:
        yield
    finally:
        if tracers:
            tracers[0].start()


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Imports are neither searched for garbage nor measured, but for what coverage counts: half of what they take."""
    gc.disable()
    measured = coverage.Coverage.current()
    # The controller of pytest-xdist collects no tests, so it needs no imports.
    if measured and not session.config.pluginmanager.hasplugin("dsession"):
        for file in (file for source in measured.get_option(SOURCE) for file in Path(source).rglob("[!_]*.py")):
            import_module(".".join(file.with_suffix("").parts))
    try:
        with untraced():
            return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(10_000, 20, 100)  # the default searches take a twentieth of the tests' time
        gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """Only tests of the measured folders count for coverage: what any other test passes by is not tested."""
    measured = coverage.Coverage.current()
    if measured and item.nodeid.startswith(tuple(f"tests/{source}/" for source in measured.get_option(SOURCE))):
        return (yield)
    with untraced():
        return (yield)


@pytest.fixture(scope="session", autouse=True)
def state_of_no_account(tmp_path_factory):
    """`caucus-party init` notes for its account which folder has which records: tests leave nothing there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def log_level_of_each_test():
    """A command sets it for its process; the next test starts without."""
    log = logging.getLogger("caucus")
    level = log.level
    yield
    log.setLevel(level)


@pytest.fixture(scope="session", autouse=True)
def composed_once(tmp_path_factory):
    """Hydra reads and merges the same files in each of two thousand compositions: once for each choice is enough.

    Overrides of single values are applied and checked by Hydra itself. A folder of a test's own is read each time.
    """
    read = ConfigRepository.load_config
    choose, merge = config_loader_impl.create_defaults_list, ConfigLoaderImpl._compose_config_from_defaults_list
    kept, own = {}, tmp_path_factory.getbasetemp()
    shared = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "composed"
    shared.mkdir(exist_ok=True)

    def hold(caching, repo):
        """A copy of what changes in it: the deep one that Hydra makes takes most of a composition."""
        caching.delegate, caching.cache = copy.copy(repo), {}

    def read_once(repo, config_path):
        make = functools.partial(read, repo, config_path)
        return once(config_path, make) if ours(repo) else make()

    def choose_once(repo, config_name, overrides_list, **how):
        if not ours(repo):
            return choose(repo, config_name, overrides_list, **how)
        choices = [
            override
            for override in overrides_list
            if override.is_sweep_override() or repo.group_exists(override.key_or_group)
        ]
        make = functools.partial(choose, repo, config_name, choices, **how)
        made = once((config_name, [override.input_line for override in choices], how), make)
        made.config_overrides = [
            override for override in overrides_list if override not in choices or isinstance(override.value(), dict)
        ]
        return made

    def merge_once(loader, defaults, repo):
        make = functools.partial(merge, loader, defaults, repo)
        return once(defaults, make) if ours(repo) else make()

    def ours(repo):
        return {f"{source.scheme()}://{source.path}" for source in repo.get_sources()} == OURS

    def once(key, make):
        """What `make` makes, perhaps by another worker of this session."""
        key = pickle.dumps((make.func.__name__, key))
        if key not in kept:
            file = shared / hashlib.sha256(key).hexdigest()
            if not file.exists():
                written = file.with_suffix(f".{os.getpid()}")
                written.write_bytes(pickle.dumps(make()))
                written.replace(file)
            kept[key] = file.read_bytes()
        return pickle.loads(kept[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(version, "_get_version", functools.cache(version._get_version))
        patch.setattr(CachingConfigRepository, "__init__", hold)
        patch.setattr(ConfigRepository, "load_config", read_once)
        patch.setattr(config_loader_impl, "create_defaults_list", choose_once)
        patch.setattr(ConfigLoaderImpl, "_compose_config_from_defaults_list", merge_once)
        yield
