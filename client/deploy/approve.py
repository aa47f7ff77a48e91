"""`caucus-party approve`: the questions of a plan to this hospital's records, shown to the person who decides.

Losses of privacy are rounded up; noise and remaining budget are rounded down. Labels, purpose, recipient and names
of queries are the coordinator's words; their unprintable characters are shown escaped, so that they cannot overwrite
the facts on the screen that a person decides by.
"""

import argparse
import getpass
import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from client import records
from client.approvals import PlanApproval, approvals, decide
from client.deploy.plan_facts import Budget, OwnRecords, PlanFacts
from client.deploy.settings import HospitalSettings
from common.errors import ConfigError, PlanError
from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.plan.words import differences
from common.system.commands import add_command

WIDTH = 17
"""Characters of a fact's name."""
REPLIES = {"": None, "y": True, "yes": True, "n": False, "no": False}


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command `approve`."""
    parser = add_command(
        commands,
        "approve",
        _approve,
        summary="show the plans that await approval, and decide",
        description="Show each plan that awaits approval and ask whether this hospital takes part. The approval is of "
        "this run and this plan only; the coordinator then resumes the run. A decision can be changed: a plan that was "
        "refused is shown with --refused, any with --run. A run that is refused after it began stops at its next "
        "question.",
        example="caucus-party approve hospital",
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="made by caucus-party init")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--run", metavar="NAME", help="this run's plans, whatever was decided before")
    which.add_argument("--refused", action="store_true", help="the plans that were refused")
    answer = parser.add_mutually_exclusive_group()
    answer.add_argument("--yes", action="store_true", help="approve without asking")
    answer.add_argument("--no", action="store_true", help="refuse without asking")
    answer.add_argument("--list", action="store_true", help="only show")
    answer.add_argument("--json", action="store_true", help="only show, as JSON")


def _approve(chosen: argparse.Namespace) -> Iterator[str]:
    settings = HospitalSettings.load(chosen.folder)
    known = approvals(settings.private)
    plans = _chosen(chosen, known)
    shown = [approval for approval in plans if _readable(approval)]
    private = records.read(settings.records, may_be_empty=True) if shown else []
    facts = [PlanFacts.gather(approval, settings, private) for approval in shown]
    if chosen.json:
        yield json.dumps([fact.plain() for fact in facts], indent=2, allow_nan=False)
        return
    for approval in plans:
        if approval not in shown:
            if chosen.no:
                decide(settings.private, approval, approve=False, by=getpass.getuser())
            yield f"run {_plain(approval.run)}: its plan is of another version of Caucus and cannot run here"
    if not plans:
        refused = sum(approval.decision == "refused" for approval in known)
        others = f"; {refused} refused before: --refused shows them" if refused else ""
        yield "no plan was refused" if chosen.refused else f"no plan awaits approval{others}"
    for fact in facts:
        yield from lines(fact)
        if chosen.list:
            continue
        approved = chosen.yes if chosen.yes or chosen.no else _asked(fact.approval)
        decision = fact.approval
        if approved is not None:
            decision = decide(settings.private, fact.approval, approve=approved, by=getpass.getuser())
        yield f"{decision.decision}: run {_plain(decision.run)}"


def _readable(approval: PlanApproval) -> bool:
    """Return whether this version can read the plan: an upgrade may find older ones, which must not hide the others."""
    try:
        Plan.from_dict(json.loads(approval.plan))
    except (PlanError, ConfigError):
        return False
    return True


def _chosen(chosen: argparse.Namespace, known: list[PlanApproval]) -> list[PlanApproval]:
    """Select the plans to show.

    Raises:
        ConfigError: No plan of the run is known.
    """
    if chosen.run is None:
        decision = "refused" if chosen.refused else "awaiting"
        return [approval for approval in known if approval.decision == decision]
    of_run = [approval for approval in known if approval.run == chosen.run]
    if not of_run:
        raise ConfigError(
            "run",
            expected="one that the coordinator has opened here",
            got=chosen.run,
            do="--list shows those that wait",
        )
    return of_run


def _asked(approval: PlanApproval) -> bool | None:
    """Ask the user for a decision; return whether it is to approve, or None if it is left open for now.

    Raises:
        ConfigError: There is no terminal to ask at.
    """
    if not sys.stdin.isatty():
        raise ConfigError("decision", expected="a terminal, --yes or --no", got="neither")
    later = "decide later" if approval.decision == "awaiting" else f"leave it {approval.decision}"
    while True:
        try:
            reply = input(f"take part? [y/n, Enter: {later}] ").strip().lower()
        except EOFError:
            return None
        if reply in REPLIES:
            return REPLIES[reply]


def lines(facts: PlanFacts) -> Iterator[str]:
    """Yield the facts in words, each on a separate line."""
    approval, plan = facts.approval, facts.plan
    by = f" by {approval.by}" if approval.by else ""
    yield f"run {_plain(approval.run)}: {approval.decision}{by}"
    yield from _facts(("plan", f"{approval.plan_digest[:16]}, first seen {approval.first_seen}"))
    yield "  what it is for, in the coordinator's words"
    yield from _facts(
        ("purpose", _plain(plan.purpose)), ("recipient", _plain(plan.recipient)), ("method", _plain(plan.method))
    )
    yield "  who takes part"
    yield from _facts(("hospitals", _hospitals(facts)))
    yield "  who can see what"
    lifting = f"{plan.threshold} of the {plan.degree + 1} hospitals that hold shares of a mask can lift it together"
    yield from _facts(
        ("coordinator", facts.trust),
        ("threshold", lifting if plan.secure else "none, because there are no masks"),
        *_differences(plan),
        ("colluders", f"{facts.colluders} other hospitals are assumed to help the coordinator"),
    )
    yield f"  what it can cost in privacy, at delta {plan.delta!r}"
    answers = "of this hospital's answers, for the coordinator"
    yield from _facts(
        ("protects", facts.unit),
        ("attempts", f"{plan.max_attempts} at each answer, each of them counted"),
        ("epsilon", f"{up(plan.epsilon)} of all that the run releases"),
        ("", f"{up(facts.epsilon_released)} of the synthetic texts, for those who read them"),
        ("", f"{up(facts.epsilon_against)} {answers} and {facts.colluders} colluders"),
        ("", f"{up(facts.epsilon_alone)} {answers} once every mask is lifted"),
        *(line for query in plan.queries for line in _query(query, plan)),
    )
    yield "  this hospital"
    beyond = f"BEYOND this hospital's limits, refused even when approved: {_plain(facts.beyond)}"
    yield from _facts(
        *_lifetime(facts.budget),
        *_records(facts.records),
        ("limits", beyond if facts.beyond else "within this hospital's limits"),
    )


def _differences(plan: Plan) -> Iterator[tuple[str, str]]:
    if plan.secure:
        yield from _wrapped("differences", differences(plan.max_dropouts, one="hospital", many="hospitals"))


def _wrapped(name: str, text: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(textwrap.wrap(text, 100)):
        yield ("" if number else name), line


def _facts(*pairs: tuple[str, str]) -> Iterator[str]:
    for name, fact in pairs:
        yield f"    {name:<{WIDTH}}{fact}"


def _hospitals(facts: PlanFacts) -> str:
    names = [f"{name} (this hospital)" if name == facts.hospital else name for name in facts.hospitals]
    if facts.unknown:
        names.append(f"{facts.unknown} NOT on this hospital's roster")
    return f"{facts.plan.parties}: {', '.join(names)}; {facts.plan.survivors} or more in each sum"


def _query(query: PlannedQuery, plan: Plan) -> Iterator[tuple[str, str]]:
    noise = "NO noise"
    if query.scale:
        noise = f"{query.mechanism} noise, scale {down(query.scale / query.spec.noise_grid)}"
    masks = "" if query.summed or not plan.secure else ", NO masks: the coordinator sees this hospital's own answer"
    proof = ", NO proof: its released texts may give a record away" if query.unproven else ""
    yield "query", f"{query.times} x {query.name} ({query.spec.kind}): {noise}{masks}{proof}"
    yield from _wrapped("", f"asks: {query.spec.asks}")


def _lifetime(budget: Budget) -> Iterator[tuple[str, str]]:
    spent = f"{up(budget.before)} by other runs, up to {up(budget.after)} with this one, at delta {budget.delta!r}"
    yield "lifetime budget", f"epsilon {spent}"
    if budget.limit is None:
        yield "", "NO limit on all runs together"
    elif budget.after > budget.limit:
        yield "", f"NOT enough: the limit is {budget.limit!r}"
    else:
        yield "", f"{down(budget.limit - budget.after)} of {budget.limit!r} is left afterwards"
    if budget.apart:
        yield "", "of all data sets; the service counts those alone that share a record with the present one"


def _records(records: OwnRecords) -> Iterator[tuple[str, str]]:
    taking_part = sum(records.of_label.values())
    yield "records", f"{taking_part} of {records.total} have one of the plan's labels (known here alone)"
    for label, count in records.of_label.items():
        yield "", f"{_plain(label)}: {count}"
    if records.without:
        yield "", f"none has: {', '.join(map(_plain, records.without))}"
    if records.unasked:
        unasked = (f"{_plain(label)} ({count})" for label, count in records.unasked.items())
        yield "", f"not asked for, they take no part: {', '.join(unasked)}"


def up(value: float) -> str:
    """Format a loss of privacy with three digits, rounded up."""
    shown = f"{value:.3f}"
    return shown if float(shown) >= value else f"{value + 0.001:.3f}"


def down(value: float) -> str:
    """Format an amount of noise or of remaining budget with three digits, rounded down."""
    shown = f"{value:.3f}"
    return shown if float(shown) <= value else f"{value - 0.001:.3f}"


def _plain(word: str) -> str:
    """Return a word as one printable line, with unprintable characters escaped."""
    return word if word.isprintable() else ascii(word)
