"""Checks for the packages of an optional extra (`make hospital EXTRAS=[transformers]`) before they are used.

A hospital's installation has neither torch nor a client for remote models. Code that needs such packages checks for
them here, in one line.
"""

import sys
from importlib.util import find_spec

from common.errors import ConfigError, MissingPackageError
from common.system.commands import WRONG_INPUT

PROGRAMS = {"coordinator": "make coordinator", "simulation": "make demo"}
"""Commands that install the extras without which a program does not start."""


def needs(what: str, *packages: str, extra: str) -> None:
    """Raise an error if one of these packages is not installed; nothing is imported.

    Args:
        what: The feature that needs the packages, or the name of its setting, for the error.
        packages: Names of top-level packages, as they are imported.
        extra: Name of the extra that installs them.

    Raises:
        MissingPackageError: A package is not installed; the message contains the command that installs it.
    """
    for package in packages:
        if find_spec(package) is None:
            raise MissingPackageError(what, expected=f"the package {package}", got="none", do=how_to_install(extra))


def how_to_install(extra: str) -> str:
    """Return the advice to install an extra, by the lock; it leaves what is installed as it is.

    The advice is never to install it by name: on PyPI another project has ours.
    """
    side = "coordinator" if find_spec("hydra") else "hospital"  # a hospital's installation has no Hydra
    return f"In the folder of the source: {PROGRAMS.get(extra, f'make {side} EXTRAS=[{extra}]')}"


def program_needs(program: str, *packages: str, extra: str) -> None:
    """End a program with a one-line error and the exit code for wrong input if `needs` fails.

    Call this function before other imports.
    """
    try:
        needs("what is installed", *packages, extra=extra)
    except ConfigError as error:
        sys.stderr.write(f"{program}: {error}\n")
        sys.exit(WRONG_INPUT)
