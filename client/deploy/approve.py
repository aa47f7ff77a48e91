"""`caucus-party approve`: what a plan asks of this hospital's records, shown to the person who decides."""

import argparse
import getpass
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from client.approvals import PlanApproval, awaiting, decide
from client.deploy.settings import HospitalSettings
from client.session import RefusalError
from common.errors import ConfigError
from common.ledger.ledger import Ledger
from common.plan.guarantee import epsilon_against, epsilon_released
from common.plan.plan import Plan
from common.system.commands import add_command


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `approve`."""
    parser = add_command(
        commands,
        "approve",
        _approve,
        summary="show the plans that await approval, and decide",
        description="Show each plan that awaits approval and ask whether this hospital takes part. The approval is of "
        "this run and this very plan; the coordinator then resumes the run.",
        example="caucus-party approve hospital",
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="made by caucus-party init")
    parser.add_argument("--run", metavar="RUN", help="only this one")
    answer = parser.add_mutually_exclusive_group()
    answer.add_argument("--yes", action="store_true", help="approve without asking")
    answer.add_argument("--no", action="store_true", help="refuse without asking")
    answer.add_argument("--list", action="store_true", help="only show")


def _approve(chosen: argparse.Namespace) -> Iterator[str]:
    settings = HospitalSettings.load(chosen.folder)
    waiting = [approval for approval in awaiting(settings.private) if chosen.run in {None, approval.run}]
    if not waiting:
        yield "no plan awaits approval"
    for approval in waiting:
        yield from _shown(approval, settings)
        if chosen.list:
            continue
        approved = chosen.yes or not (chosen.no or not _confirmed())
        decision = decide(settings.private, approval, approve=approved, by=getpass.getuser()).decision
        yield f"{decision}: run {approval.run}"


def _confirmed() -> bool:
    if not sys.stdin.isatty():
        raise ConfigError("decision", expected="a terminal, --yes or --no", got="neither")
    return input("take part? [y/N] ").strip().lower() in {"y", "yes"}


def _shown(approval: PlanApproval, settings: HospitalSettings) -> Iterator[str]:
    plan = Plan.from_dict(json.loads(approval.plan))
    colluders = min(plan.colluders, plan.parties - 1)
    yield f"run {approval.run}, first seen {approval.first_seen}, plan {approval.plan_digest[:16]}"
    yield f"  {plan.method} with {plan.parties} hospitals, labels: {', '.join(map(_plain, plan.labels))}"
    yield f"  epsilon {plan.epsilon:g} at delta {plan.delta:g}, protecting each {plan.unit}"
    against = epsilon_against(plan, colluders)
    yield f"  of the released texts {epsilon_released(plan):.3f}; against the coordinator {against:.3f}"
    sums = (
        f"masks open to sums over {plan.survivors} or more alone"
        if plan.secure
        else "NO masks: it sees this hospital's answer"
    )
    yield f"  the coordinator: {sums}"
    for query in plan.queries:
        noise = (
            f"{query.mechanism} noise, scale {query.scale / query.spec.noise_grid:.3f}" if query.scale else "NO noise"
        )
        warning = "" if query.summed or not plan.secure else ", NO masks: it sees this hospital's own answer"
        proof = ", NO proof: its released texts may give a record away" if query.unproven else ""
        yield f"  {query.times} x {query.name} ({query.spec.kind}): {noise}{warning}{proof}"
    ledger = settings.private / "ledger.db"
    try:
        earlier = Ledger(ledger, read_only=True).releases() if ledger.exists() else ()
        settings.party.limits.check(plan, earlier)
        yield "  within this hospital's limits"
    except RefusalError as error:
        yield f"  BEYOND this hospital's limits, refused even when approved: {error}"


def _plain(label: str) -> str:
    """A label as one line: it is the coordinator's, and must not write over what a person decides by."""
    return label if label.isprintable() else repr(label)
