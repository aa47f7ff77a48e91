"""`caucus-coordinator plan`: the privacy cost and forecast of a run, before anything private is touched."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from common.system.commands import add_command
from server.configuration import asked
from server.deploy import runs
from server.deploy.settings import CoordinatorSettings


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `plan`."""
    parser = add_command(
        commands,
        "plan",
        _plan,
        summary="print queries, noise, ε, δ and the forecast of model calls as JSON",
        description="Print, as JSON and before anything private is touched, every query, its sensitivity and noise, ε "
        "and δ in total, and the expected model calls.",
        example="caucus-coordinator plan privacy.epsilon=4 federation.parties=10",
    )
    parser.add_argument("overrides", nargs="*", metavar="OVERRIDE", help="such as privacy.epsilon=4")
    parser.add_argument("--folder", type=Path, help="a coordinator's folder: plan for the hospitals enrolled there")


def _plan(chosen: argparse.Namespace) -> Iterator[str]:
    overrides = list(chosen.overrides)
    config = runs.settled(CoordinatorSettings.load(chosen.folder), overrides) if chosen.folder else asked(overrides)

    from server.app import build_parts  # noqa: PLC0415 takes seconds: a wrong setting is named first
    from server.planning.forecast import forecast  # noqa: PLC0415
    from server.planning.guarantee_facts import describe  # noqa: PLC0415
    from server.run_folder import for_json  # noqa: PLC0415

    parts = build_parts(config)
    privacy = describe(parts.plan, earlier=parts.earlier)
    del privacy["spent"]
    prices = parts.spending.prices
    facts = privacy | {"forecast": forecast(parts.method, parts.source.task(), parts.plan, parts.providers, prices)}
    yield json.dumps(for_json(facts), indent=2, ensure_ascii=False)
