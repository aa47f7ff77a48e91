"""Import of a library without optional packages, which take seconds to import and are not needed here."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder


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

    If a library is imported inside the context, it behaves as if these packages were not installed: the parts that need
    them stay switched off for the life of the process. Other threads may import the packages at the same time. If a
    library only checks whether a package exists (`importlib.util.find_spec`), it gets the same error.
    """
    before, _BLOCKED.packages = _BLOCKED.packages, packages
    try:
        yield
    finally:
        _BLOCKED.packages = before
