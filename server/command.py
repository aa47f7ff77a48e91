"""`caucus-coordinator`: what a coordinator does from the command line.

caucus-coordinator plan [OVERRIDE ...]      queries, noise, ε and forecast as JSON, before anything private is touched
caucus-coordinator report RUN               report.html and report.json once more, from the other files of a run folder
caucus-coordinator evaluate RUN --test FILE [--metrics GROUP ...]   figures of a run by texts that are no party's
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hydra.errors import HydraException
from hydra.utils import instantiate
from omegaconf.errors import OmegaConfBaseException

from common.data.load import read_records
from common.errors import CaucusError, CheckpointError
from server import evaluate, measures
from server.app import Parts, composed, load, one_line
from server.evaluate import METRICS, Evaluation
from server.planning import describe, forecast
from server.report import write_report
from server.run import for_json, read_candidates, write_json


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
    later = commands.add_parser("evaluate", help="measure a run's texts by a test file; updates metrics.json, report")
    later.add_argument("run", type=Path, help="the run folder, complete or partial")
    later.add_argument("--test", type=Path, required=True, help="CSV or JSON Lines with text,label; no party's records")
    later.add_argument("--metrics", nargs="*", metavar="GROUP", help=f"any of {', '.join(METRICS)}; else the run's own")
    page = commands.add_parser("report", help="write report.html and report.json of a run folder again")
    page.add_argument("run", type=Path, help="the run folder, complete or partial")
    chosen = parser.parse_args(arguments)
    try:
        if chosen.command == "report":
            print(_report(chosen.run))  # noqa: T201 the command's product
            return 0
        made = (
            _plan(chosen.overrides) if chosen.command == "plan" else _evaluate(chosen.run, chosen.test, chosen.metrics)
        )
        print(json.dumps(for_json(made), indent=2, ensure_ascii=False))  # noqa: T201 the command's product
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


def _evaluate(run: Path, test: Path, chosen: Sequence[str] | None) -> dict[str, Any]:
    """The run's `metrics.json` with the figures by these test texts; what was measured before stays beside them."""
    if not (run / "config.yaml").is_file():
        raise CheckpointError("run folder", expected="one with a config.yaml", got="none", where=run)
    config, known = load(run), run / "metrics.json"
    evaluation: Evaluation = instantiate(config.evaluation, _convert_="all")
    if chosen is not None:
        evaluation = replace(evaluation, metrics=chosen)
    measured = measures.Measured(
        candidates=read_candidates(run),
        test=read_records(test),
        evaluation=evaluation,
        encoder=instantiate(config.embedding, _convert_="all"),
        experiment_seed=config.experiment_seed,
    )
    if not measured.candidates:
        raise CheckpointError("run folder", expected="synthetic texts", got="none yet", where=run)
    made = {name: group | {"test": test.name} for name, group in measures.of_texts(measured).items()}
    small = evaluate.metrics(measured.candidates, measured.test, evaluation, measured.encoder)
    before = json.loads(known.read_text(encoding="utf-8")) if known.exists() else {}
    metrics = before | small | {"test": test.name} | made | measures.without_records(evaluation.metrics, before)
    status = json.loads((run / "run.json").read_text(encoding="utf-8"))["status"]
    if status != "complete":
        metrics["note"] = f"the run is {status}: these are the texts that there were"
    write_json(known, metrics)
    write_report(run)
    return metrics


if __name__ == "__main__":
    sys.exit(main())
