"""Importing a library without an optional package, which it would import, for seconds, and does not need here."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder


@contextmanager
def blocked_import(package: str) -> Iterator[None]:
    """Within it, imports by this thread find `package` only if it is loaded already.

    What is imported here keeps its own parts that need the package switched off while this process lasts, as where the
    package is not installed. Other threads may import it at the same time.
    """
    finder = _Missing(package)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Missing(MetaPathFinder):
    def __init__(self, package: str) -> None:
        self._package, self._thread = package, threading.get_ident()

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        del path, target
        if fullname == self._package and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
