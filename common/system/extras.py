"""Packages that an extra of the installation brings (`pip install 'caucus[transformers]'`), looked for before use.

A hospital's installation has neither torch nor a client of a remote model: what needs more says so here, in one line.
"""

import sys
from importlib.util import find_spec

from common.errors import ConfigError, MissingPackageError
from common.system.commands import WRONG_INPUT


def needs(what: str, *packages: str, extra: str) -> None:
    """Refuse what cannot be done without packages that are not installed; nothing is imported.

    Args:
        what: What needs them, or the name of its setting, for the error.
        packages: Names of top-level packages, as they are imported.
        extra: Name of the extra that brings them.

    Raises:
        MissingPackageError: One of them is not installed; it names the command that installs it.
    """
    for package in packages:
        if find_spec(package) is None:
            install = f"pip install 'caucus[{extra}]'"
            raise MissingPackageError(what, expected=f"the package {package}", got="none", do=install)


def program_needs(program: str, *packages: str, extra: str) -> None:
    """End a program with one line and the code of wrong input if `needs` refuses it: for use before its own imports."""
    try:
        needs("what is installed", *packages, extra=extra)
    except ConfigError as error:
        sys.stderr.write(f"{program}: {error}\n")
        sys.exit(WRONG_INPUT)
