"""Whole federations on one machine, by the code of hospitals and coordinator, and their comparison with papers."""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).parents[1] / "common" / "system" / "packages.py"))["refuse_strangers"]()
