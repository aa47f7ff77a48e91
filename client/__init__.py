"""The programs of a hospital: its own service, and the relay that Flower's messages pass through."""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).parents[1] / "common" / "system" / "packages.py"))["refuse_strangers"]()
