"""Whole outputs as people see them, in files that a reviewer accepted: ACCEPT=yes writes them anew."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path


def assert_accepted(screen: str, file: Path) -> None:
    """Assert that an output equals the content of its file, which ACCEPT=yes replaces by the output."""
    if os.environ.get("ACCEPT") == "yes":
        file.parent.mkdir(exist_ok=True)
        file.write_text(screen, encoding="utf-8")
    assert screen == file.read_text(encoding="utf-8")


def under_headings(screens: Mapping[str, Iterable[object]]) -> str:
    """Return the lines of several screens, each screen below its name."""
    return "".join(f"# {name}\n" + "".join(f"{line}\n" for line in lines) for name, lines in screens.items())
