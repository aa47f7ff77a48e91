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
from client.deploy.plan_facts import NOT_STATED_BY_THE_PLAN, Budget, OwnRecords, PlanFacts, down, up
from client.deploy.settings import HospitalSettings
from common.errors import ConfigError, PlanError
from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.plan.words import differences
from common.system.commands import add_command

WIDTH = 17
"""Width, in characters, of the column of the facts' names."""
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
        "question. Each decision is a line of the audit log: who, when, from what to what, and why if --reason says "
        "so.",
        example="caucus-party approve hospital",
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="made by caucus-party init")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--run", metavar="NAME", help="this run's plans, whatever was decided before")
    which.add_argument("--refused", action="store_true", help="the plans that were refused")
    parser.add_argument("--reason", metavar="TEXT", default="", help="why, for this hospital's audit log; never sent")
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
                decide(settings.private, approval, approve=False, by=getpass.getuser(), reason=chosen.reason)
            yield f"run {_plain(approval.run)}: its plan is of another version of Caucus and cannot run here"
    if not plans:
        yield "no plan was refused" if chosen.refused else "no plan awaits approval"
    if chosen.run is None and not chosen.refused:
        yield from _refused(known)
    for fact in facts:
        yield from lines(fact)
        if chosen.list:
            continue
        decision = _decided(chosen, settings, fact.approval)
        yield f"{decision.decision}: run {_plain(decision.run)}"


def _refused(known: list[PlanApproval]) -> Iterator[str]:
    refused = [approval for approval in known if approval.decision == "refused"]
    yield from map(_decision, refused)
    if refused:
        yield "refused plans are shown in full, and can be approved, with --refused"


def _decided(chosen: argparse.Namespace, settings: HospitalSettings, approval: PlanApproval) -> PlanApproval:
    """Store the decision of the command line or the person; return the approval with it, if there is one."""
    reason = chosen.reason
    approved = chosen.yes if chosen.yes or chosen.no else _asked(approval)
    if approved is None:
        return approval
    if not approved and not chosen.no:
        reason = reason or _asked_why()
    return decide(settings.private, approval, approve=approved, by=getpass.getuser(), reason=reason)


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


def _asked_why() -> str:
    """Ask for the reason of a refusal and return it; it may be empty."""
    try:
        return _plain(input("why? [for this hospital's audit log, never sent; Enter: no reason] ").strip()[:200])
    except EOFError:
        return ""


def _decision(approval: PlanApproval) -> str:
    """Return a plan's decision in a line: by whom, when and why, if it was decided."""
    by = f" by {approval.by}" if approval.by else ""
    when = f", {approval.decided}" if approval.decided else ""
    why = f": {_plain(approval.reason)}" if approval.reason else ""
    return f"run {_plain(approval.run)}: {approval.decision}{by}{when}{why}"


def lines(facts: PlanFacts) -> Iterator[str]:
    """Yield the facts in words, each on a separate line."""
    approval, plan = facts.approval, facts.plan
    yield _decision(approval)
    yield from _facts(("plan", f"{approval.plan_digest[:16]}, first seen {approval.first_seen}"))
    yield "  what it is for, in the coordinator's words"
    yield from _facts(
        ("purpose", _plain(plan.purpose)),
        ("recipient", _plain(plan.recipient)),
        ("", "both are the coordinator's word alone: nothing enforces them"),
        ("method", _plain(plan.method)),
        *_wrapped("not stated", f"ask the coordinator {', '.join(NOT_STATED_BY_THE_PLAN)}: the plan does not say it"),
    )
    yield "  who takes part"
    yield from _facts(("hospitals", _hospitals(facts)))
    yield "  who can see what"
    lifting = f"{plan.threshold} of the {plan.degree + 1} hospitals that hold shares of a mask can lift it together"
    yield from _facts(
        ("coordinator", facts.trust),
        ("threshold", lifting if plan.secure else "none, because there are no masks"),
        *_differences(plan),
        ("colluders", f"{_colluders(facts.colluders)} assumed to help the coordinator"),
        ("own texts", _own_texts(facts)),
    )
    yield f"  what it can cost in privacy, at delta {plan.delta!r}"
    answers, helpers = "of this hospital's answers, for the coordinator", ""
    if facts.colluders:
        helpers = f" and {facts.colluders} colluder{'s' if facts.colluders > 1 else ''}"
    most = "once" if plan.max_attempts == 1 else f"up to {plan.max_attempts} times, each counted in epsilon"
    whose = "a record" if plan.unit == "sample" else "a user's records"
    yield from _facts(
        ("protects", facts.unit),
        ("answers", f"each question is answered with fresh noise {most}"),
        ("epsilon", _epsilon(facts, plan.epsilon, "of all that the run releases")),
        ("", _epsilon(facts, facts.epsilon_released, "of the synthetic texts, for those who read them")),
        ("", _epsilon(facts, facts.epsilon_against, f"{answers}{helpers}")),
        ("", _epsilon(facts, facts.epsilon_alone, f"{answers} once every mask is lifted")),
        *_wrapped(
            "a guess",
            f"of somebody who knows everything else, whether {whose} took part, yes and no equally likely: right at "
            "most as often as stated above; a coin toss is right in 50 % of cases",
        ),
        *(line for query in plan.queries for line in _query(query, plan)),
    )
    yield "  what the guarantee does not cover; a party is a hospital that takes part"
    for number, item in enumerate(facts.not_covered):
        yield from _facts(*_wrapped("" if number else "not covered", f"- {item}"))
    yield "  this hospital"
    beyond = f"BEYOND this hospital's limits, refused even when approved: {_plain(facts.beyond)}"
    yield from _facts(
        *_lifetime(facts.budget),
        *_records(facts.records),
        ("limits", beyond if facts.beyond else "within this hospital's limits"),
        ("decision", "the coordinator learns it, a refusal too, and when it was made; never who made it, or why"),
    )


def _epsilon(facts: PlanFacts, epsilon: float, whose: str) -> str:
    return f"{up(epsilon)} {whose}: a right guess in at most {facts.right_guesses(epsilon):g} % of cases"


def _colluders(number: int) -> str:
    return "no other hospital is" if not number else "1 other hospital is" if number == 1 else f"{number} others are"


def _own_texts(facts: PlanFacts) -> str:
    if not facts.own_texts:
        return "none leave this hospital: its answers are numbers"
    return f"up to {facts.own_texts} leave this hospital, made from its records by its own model"


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
    # The limit has a delta of its own, so that its share is shown: two deltas on one sheet would be compared.
    if budget.limit is None:
        before, after = (f"epsilon {up(epsilon)}" for epsilon in (budget.before, budget.after))
        yield "lifetime budget", f"NO limit on all runs: {before} by other runs, up to {after} with this one"
    else:
        before, after = (f"{up(100 * epsilon / budget.limit, 1)} %" for epsilon in (budget.before, budget.after))
        yield "lifetime budget", f"{before} is used by other runs, up to {after} with this one"
        left = down(100 * (1 - budget.after / budget.limit), 1)
        yield "", "NOT enough" if budget.after > budget.limit else f"{left} % is left afterwards"
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


def _plain(word: str) -> str:
    """Return a word as one printable line, with unprintable characters escaped."""
    return word if word.isprintable() else ascii(word)
