"""The programs that a hospital runs: its own party service, and the relay that carries Flower's messages to it."""

import runpy
from pathlib import Path

runpy.run_path(str(Path(__file__).parents[1] / "common" / "system" / "packages.py"))["refuse_strangers"]()
