"""Checks for the packages of an optional extra (`pip install '.[transformers]'`) before they are used.

A hospital's installation has neither torch nor a client for remote models. Code that needs such packages checks for
them here, in one line.
"""

import sys
from importlib.util import find_spec

from common.errors import ConfigError, MissingPackageError
from common.system.commands import WRONG_INPUT


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
            # Another project has our name on PyPI: never advise to install it from there by name.
            install = f"In the folder of the source: pip install '.[{extra}]'"
            raise MissingPackageError(what, expected=f"the package {package}", got="none", do=install)


def program_needs(program: str, *packages: str, extra: str) -> None:
    """End a program with a one-line error and the exit code for wrong input if `needs` fails.

    Call this function before other imports.
    """
    try:
        needs("what is installed", *packages, extra=extra)
    except ConfigError as error:
        sys.stderr.write(f"{program}: {error}\n")
        sys.exit(WRONG_INPUT)
