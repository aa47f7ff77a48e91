"""`caucus-coordinator`: what a coordinator does from the command line.

caucus-coordinator plan [OVERRIDE ...]      queries, noise, ε and forecast as JSON, before anything private is touched
caucus-coordinator report RUN               report.html and report.json once more, from the other files of a run folder
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from common.errors import CaucusError, CheckpointError
from server.app import Parts, composed, one_line
from server.planning import describe, forecast
from server.report import write_report
from server.run import for_json


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code: 0 done, 2 a wrong input with its reason on standard error."""
    parser = argparse.ArgumentParser(
        prog="caucus-coordinator",
        description="Coordinate a federation. Settings are Hydra overrides, the same as for caucus-simulate.",
        epilog="example: caucus-coordinator plan privacy.epsilon=4 federation.parties=10",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    plan = commands.add_parser("plan", help="print queries, noise, ε, δ and the forecast of model calls as JSON")
    plan.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="such as privacy.epsilon=4")
    page = commands.add_parser("report", help="write report.html and report.json of a run folder again")
    page.add_argument("run", type=Path, help="the run folder, complete or partial")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.command == "report":
            print(_report(chosen.run))  # noqa: T201 the command's product
            return 0
        print(json.dumps(for_json(_plan(chosen.overrides)), indent=2, ensure_ascii=False))  # noqa: T201 the command's product
    except (CaucusError, HydraException, OmegaConfBaseException) as error:
        print(f"caucus-coordinator: {one_line(error)}", file=sys.stderr)  # noqa: T201
        return 2
    return 0


def _plan(overrides: Sequence[str]) -> dict[str, object]:
    parts = Parts(composed(list(overrides)))
    privacy = describe(parts.plan)
    del privacy["spent"]
    return privacy | {"forecast": forecast(parts.method, parts.source.task(), parts.providers)}


def _report(run: Path) -> Path:
    if not (run / "config.yaml").is_file():
        raise CheckpointError("run folder", expected="one with a config.yaml", got="none", where=run)
    return write_report(run)


if __name__ == "__main__":
    sys.exit(main())
