"""`caucus-coordinator`: what a coordinator does from the command line.

caucus-coordinator plan [OVERRIDE ...]             queries, noise, ε and forecast as JSON, before a record is touched
caucus-coordinator check [--json] [OVERRIDE ...]   what the run would use, with digests, and what it lacks
"""

import argparse
import functools
import json
import sys
from collections.abc import Callable, Sequence

from hydra.errors import HydraException
from hydra.utils import instantiate
from omegaconf.errors import OmegaConfBaseException

from common.errors import CaucusError
from server import preflight
from server.app import Parts, composed, one_line
from server.planning import describe, forecast
from server.run import for_json

EXPECTED = (CaucusError, HydraException, OmegaConfBaseException)
"""What a wrong setting or a missing part raises; anything else is a bug and comes with its traceback."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code: 0 done, 1 something is missing, 2 a wrong input, its reason on stderr."""
    parser = argparse.ArgumentParser(
        prog="caucus-coordinator",
        description="Coordinate a federation. Settings are Hydra overrides, the same as for caucus-simulate.",
        epilog="example: caucus-coordinator plan privacy.epsilon=4 federation.parties=10",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    plan = commands.add_parser("plan", help="print queries, noise, ε, δ and the forecast of model calls as JSON")
    plan.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="such as privacy.epsilon=4")
    check = commands.add_parser("check", help="say what a run would use and what it lacks; exit code 1 if anything")
    check.add_argument("--json", action="store_true", help="as JSON")
    check.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="such as embedding=biobert")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.command == "check":
            return _check(chosen.overrides, as_json=chosen.json)
        print(json.dumps(for_json(_plan(chosen.overrides)), indent=2, ensure_ascii=False))  # noqa: T201 the command's product
    except EXPECTED as error:
        print(f"caucus-coordinator: {one_line(error)}", file=sys.stderr)  # noqa: T201
        return 2
    return 0


def _plan(overrides: Sequence[str]) -> dict[str, object]:
    parts = Parts(composed(list(overrides)))
    privacy = describe(parts.plan)
    del privacy["spent"]
    prices = parts.spending.prices
    return privacy | {"forecast": forecast(parts.method, parts.source.task(), parts.plan, parts.providers, prices)}


def _check(overrides: Sequence[str], *, as_json: bool) -> int:
    config = composed(list(overrides))
    build = functools.partial(instantiate, _convert_="all")
    findings = preflight.preflight(config, build, lambda: Parts(config).plan.digest().hex(), _why)
    if as_json:
        print(json.dumps(preflight.for_json(findings), indent=2, ensure_ascii=False))  # noqa: T201
    else:
        print("\n".join(preflight.table(findings)))  # noqa: T201
    return 0 if all(finding.fine for finding in findings) else 1


def _why(look: Callable[[], None]) -> str | None:
    try:
        look()
    except EXPECTED as error:
        return one_line(error)
    return None


if __name__ == "__main__":
    sys.exit(main())
