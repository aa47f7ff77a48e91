"""Packages that may be absent: those of optional extras (`make hospital EXTRAS=[transformers]`), checked before use.

A hospital's installation has neither torch nor a client for remote models. `blocked_import` treats installed packages
as absent, where a library would only lose seconds by importing them.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.util import find_spec

from common.errors import ConfigError, MissingPackageError
from common.system.commands import WRONG_INPUT

PROGRAMS = {"coordinator": "make coordinator", "simulation": "make demo"}
"""Commands that install the extras without which a program does not start."""


def needs(what: str, *packages: str, extra: str) -> None:
    """Check that these top-level packages are installed, without importing them.

    Args:
        what: The feature that needs the packages, or the name of its setting, for the error.
        packages: Their names, as they are imported.
        extra: The extra that installs them.

    Raises:
        MissingPackageError: A package is not installed; the message contains the command that installs it.
    """
    for package in packages:
        if find_spec(package) is None:
            raise MissingPackageError(what, expected=f"the package {package}", got="none", do=how_to_install(extra))


def how_to_install(extra: str) -> str:
    """Return the advice to install an extra by the lock, never by name: on PyPI another project has ours."""
    side = "coordinator" if find_spec("hydra") else "hospital"  # a hospital's installation has no Hydra
    return f"In the folder of the source: {PROGRAMS.get(extra, f'make {side} EXTRAS=[{extra}]')}"


def program_needs(program: str, *packages: str, extra: str) -> None:
    """End a program with a one-line error and the exit code of wrong input if `needs` fails; call it before imports."""
    try:
        needs("what is installed", *packages, extra=extra)
    except ConfigError as error:
        sys.stderr.write(f"{program}: {error}\n")
        sys.exit(WRONG_INPUT)


class _Blocked(MetaPathFinder, threading.local):
    """Import finder that makes the import of packages that this thread has blocked fail."""

    packages: tuple[str, ...] = ()

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        del path, target
        if fullname in self.packages:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


_BLOCKED = _Blocked()
# Once and for all: a thread that imports while finders change may miss one.
sys.meta_path.insert(0, _BLOCKED)


@contextmanager
def blocked_import(*packages: str) -> Iterator[None]:
    """Make imports of these packages by this thread fail inside the context, unless the packages are already loaded.

    A library that is imported inside the context behaves as if these packages were not installed, for the life of the
    process, even if it only checks whether they exist (`importlib.util.find_spec`). Other threads may import them.
    """
    before, _BLOCKED.packages = _BLOCKED.packages, packages
    try:
        yield
    finally:
        _BLOCKED.packages = before
