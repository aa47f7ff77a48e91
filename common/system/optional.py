"""Import of a library without an optional package, which takes seconds to import and is not needed here."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder


class _Blocked(MetaPathFinder, threading.local):
    """Finder that ends the search for the package that this thread has blocked, without finding it."""

    package: str | None = None

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        del path, target
        if fullname == self.package:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


_BLOCKED = _Blocked()
# Once and for all: a thread that imports while finders change may miss one.
sys.meta_path.insert(0, _BLOCKED)


@contextmanager
def blocked_import(package: str) -> Iterator[None]:
    """Within it, imports by this thread find `package` only if it is loaded already.

    What is imported here keeps its own parts that need the package switched off while this process lasts, as where the
    package is not installed. Other threads may import it at the same time. A library that only asks whether the package
    is there (`importlib.util.find_spec`) gets the same error.
    """
    _BLOCKED.package = package
    try:
        yield
    finally:
        _BLOCKED.package = None
