"""Runs all benchmarks and prints their ratios in one table: `make bench`.

    python -m simulations.laboratory.benchmarks [NAME ...] [--accept]

Each benchmark runs in a separate process. A ratio that is more than 1.5 times the recorded one (`ratios.json`) is a
regression, for which the exit code is 1. `--accept` records the new ratios of the benchmarks that were run, and writes
the table into this folder's README.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from simulations.laboratory.benchmarks.ratios import OPTION, Ratio
from simulations.sweeps.render import markdown_row

NAMES = ("startup", "memory", "votes", "requests", "secagg")
REGRESSION = 1.5
RECORDED = Path(__file__).with_name("ratios.json")
PAGE = Path(__file__).with_name("README.md")
_BEGIN, _END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks and print the table; return 1 as the exit code if a regression is not accepted."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__.split("\n", 1)[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(NAMES)}; none: all")
    parser.add_argument("--accept", action="store_true", help="record the ratios and write the table")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.names) - set(NAMES)):
        parser.error(f"{', '.join(unknown)}: expected some of {', '.join(NAMES)}")
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    measured = {name: ratios_of(name) for name in options.names or NAMES}
    now = {name: entry(ratios) for name, ratios in measured.items()}
    sys.stdout.write(table(now, recorded))
    worse = regressions(now, recorded)
    if options.accept:
        recorded |= now
        RECORDED.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
        before, rest = PAGE.read_text(encoding="utf-8").split(_BEGIN)
        PAGE.write_text(f"{before}{_BEGIN}\n{table(recorded)}{_END}{rest.split(_END)[1]}", encoding="utf-8")
    elif worse:
        sys.stdout.write(f"more than {REGRESSION} times as recorded: {'; '.join(worse)}\n")
        return 1
    return 0


def ratios_of(name: str) -> list[Ratio]:
    """Run one benchmark, and return its ratios.

    Raises:
        CalledProcessError: The benchmark failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ratios.json"
        command = [sys.executable, "-m", f"simulations.laboratory.benchmarks.{name}", OPTION, str(file)]
        subprocess.run(command, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
        return [Ratio(**fields) for fields in json.loads(file.read_text(encoding="utf-8"))]


def entry(ratios: Sequence[Ratio]) -> dict[str, Any]:
    """Return a benchmark's entry: the machine, the date, the machine's load and the ratios."""
    return {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {_processor()}",
        "date": datetime.now(UTC).date().isoformat(),
        "load": round(os.getloadavg()[1], 1),
        "ratios": [{"name": ratio.name, "to": ratio.to, "value": ratio.value, "goal": ratio.goal} for ratio in ratios],
    }


def regressions(now: dict[str, Any], recorded: dict[str, Any]) -> list[str]:
    """Return a message for each ratio that is more than `REGRESSION` times the recorded one, with both values."""
    before = _values(recorded)
    return [
        f"{benchmark}, {name}: {value:.3g}, recorded {before[benchmark, name]:.3g}"
        for (benchmark, name), value in _values(now).items()
        if (benchmark, name) in before and value > REGRESSION * before[benchmark, name]
    ]


def table(entries: dict[str, Any], recorded: dict[str, Any] | None = None) -> str:
    """Return a table of ratios in Markdown, with a column of recorded ratios if `recorded` is given."""
    before = _values(recorded or {})
    recorded_column = [] if recorded is None else ["recorded"]
    head = ["benchmark", "figure", "to", "ratio", "goal", *recorded_column, "machine, date, load"]
    lines = [head, ["---"] * len(head)]
    for benchmark, run in entries.items():
        where = f"{run['machine']}, {run['date']}, load {run['load']}"
        for ratio in run["ratios"]:
            goal = "" if ratio["goal"] is None else f"{ratio['goal']:g}"
            cells = [benchmark, ratio["name"], ratio["to"], f"{ratio['value']:.3g}", goal]
            if recorded is not None:
                old = before.get((benchmark, ratio["name"]))
                cells.append("" if old is None else f"{old:.3g}")
            lines.append([*cells, where])
            where = ""
    return "".join(map(markdown_row, lines))


def _values(entries: dict[str, Any]) -> dict[tuple[str, str], float]:
    return {(name, ratio["name"]): ratio["value"] for name, run in entries.items() for ratio in run["ratios"]}


def _processor() -> str:
    """Return the processor's name, or "unknown" if Linux does not report it."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


if __name__ == "__main__":
    sys.exit(main())
