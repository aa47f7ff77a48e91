"""The coordinator: it never sees a private record, only noised answers."""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).parents[1] / "common" / "system" / "packages.py"))["refuse_strangers"]()
