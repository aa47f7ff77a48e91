"""Check that our top-level packages come from one installation: other projects use the same names.

`server`, `client` and `simulations` run this file when they are imported. They run it by its path, since the foreign
package may be `common` itself; so it imports only the standard library. A package may be reached by links, through an
editable installation or by PYTHONPATH, as long as it is the one next to this `common`.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

NAMES = ("client", "common", "configs", "protos", "server", "simulations")
FILE = Path(__file__)
ROOTS = (FILE.parents[2], FILE.resolve().parents[2])
"""Folders in which our packages may be: two, since `common` may itself be a link."""


def strangers() -> dict[str, str]:
    """Return the paths of packages that Python would import in place of ours, keyed by our packages' names."""
    places = {name: _places(name) for name in NAMES}
    return {name: there[0] for name, there in places.items() if there and not any(_is_ours(name, at) for at in there)}


def refuse_strangers() -> None:
    """Stop if a foreign package has the name of one of ours; our own commands end with one line and exit code 2.

    Raises:
        ImportError: A name is taken, and this is not one of our commands; the message contains the package and its
            path.
    """
    for name, place in strangers().items():
        message = (
            f"package {name}; expected {ROOTS[0] / name}; got another project's; at {place}. "
            "Install Caucus into a separate virtual environment, and keep folders with packages of these names "
            f"({', '.join(NAMES)}) out of PYTHONPATH and of where Python is started"
        )
        program = Path(sys.argv[0] if sys.argv else "").name
        if not program.startswith("caucus-"):
            raise ImportError(message)
        sys.stderr.write(f"{program}: {message}\n")
        sys.exit(2)


def _places(name: str) -> list[str]:
    module = find_spec(name)
    return [*(module.submodule_search_locations or [str(module.origin)])] if module else []


def _is_ours(name: str, place: str) -> bool:
    return Path(place).is_dir() and any((root / name).is_dir() and (root / name).samefile(place) for root in ROOTS)
