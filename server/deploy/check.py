"""`caucus-coordinator check`: what a run would use, and what it lacks, before anything private is touched."""

import argparse
import json
from collections.abc import Callable, Iterator

from common.errors import CaucusError
from common.system.commands import add_command
from server import preflight
from server.app import Parts, build, composed
from server.failure import WRONG_SETTINGS, one_line


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `check`."""
    parser = add_command(
        commands,
        "check",
        _check,
        summary="say what a run would use and what it lacks; exit code 1 if anything",
        description="Look at every part of a run by itself: models, keys, encoder, files. Nothing private is read.",
        example="caucus-coordinator check embedding=biobert",
    )
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="such as embedding=biobert")
    parser.add_argument("--json", action="store_true", help="as JSON")


def _check(chosen: argparse.Namespace) -> Iterator[str]:
    config = composed(list(chosen.overrides))
    findings = preflight.preflight(config, build, lambda: Parts(config).plan.digest().hex(), _why)
    if chosen.json:
        yield json.dumps(preflight.for_json(findings), indent=2, ensure_ascii=False)
    else:
        yield from preflight.table(findings)
    missing = [finding for finding in findings if not finding.fine]
    if missing:
        raise CaucusError("not ready", expected="every part", got=f"{len(missing)} that a run could not use")


def _why(look: Callable[[], None]) -> str | None:
    try:
        look()
    except (CaucusError, *WRONG_SETTINGS) as error:
        return one_line(error)
    return None
