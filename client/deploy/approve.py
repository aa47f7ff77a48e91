"""`caucus-party approve`: shows what a plan asks about this hospital's records, to the person who decides on it.

The sheet comes from `plan_sheet.py`, and `caucus-party page` shows the same sheet.
"""

import argparse
import sys
import textwrap
from collections.abc import Iterator

from client.approvals import PlanApproval, approvals, decide
from client.deploy.account import account
from client.deploy.plan_facts import PlanFacts
from client.deploy.plan_sheet import decision, plain, sheet
from client.deploy.settings import HospitalSettings
from common.errors import ConfigError
from common.system.commands import Commands, add_command, add_folder, as_json

WIDTH = 17
"""Width, in characters, of the column with the facts' names."""
LONGEST_LINE = 100
"""Maximum width, in characters, of a line of a long fact."""
REPLIES = {"": None, "y": True, "yes": True, "n": False, "no": False}


def register(commands: Commands) -> None:
    """Add the `approve` command."""
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
    add_folder(parser, "caucus-party")
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
    shown = [approval for approval in plans if approval.read_plan()]
    private = settings.read_records(may_be_empty=True) if shown else []
    alone = len(shown) == 1
    facts = [PlanFacts.gather(approval, settings, private, known=known, alone=alone) for approval in shown]
    if chosen.json:
        yield as_json([fact.plain() for fact in facts])
        return
    for approval in plans:
        if approval not in shown:
            if chosen.no:
                decide(settings.private, approval, approve=False, by=account(), reason=chosen.reason)
            yield f"run {plain(approval.run)}: its plan was changed, or is of another version of Caucus"
    if not plans:
        yield "no plan was refused" if chosen.refused else "no plan awaits approval"
    if chosen.run is None and not chosen.refused:
        yield from _refused(known)
    for fact in facts:
        yield from lines(fact)
        if chosen.list:
            continue
        decided = _decided(chosen, settings, fact.approval)
        yield f"{decided.decision}: run {plain(decided.run)}"


def _refused(known: list[PlanApproval]) -> Iterator[str]:
    refused = [approval for approval in known if approval.decision == "refused"]
    yield from map(decision, refused)
    if refused:
        yield "refused plans are shown in full, and can be approved, with --refused"


def _decided(chosen: argparse.Namespace, settings: HospitalSettings, approval: PlanApproval) -> PlanApproval:
    """Store the decision from the command line or a prompt; return the approval, unchanged if nothing was decided."""
    reason = chosen.reason
    approved = chosen.yes if chosen.yes or chosen.no else _asked(approval)
    if approved is None:
        return approval
    if not approved and not chosen.no:
        reason = reason or _asked_why()
    return decide(settings.private, approval, approve=approved, by=account(), reason=reason)


def _chosen(chosen: argparse.Namespace, known: list[PlanApproval]) -> list[PlanApproval]:
    """Return the plans to show.

    Raises:
        ConfigError: No plan of the run is known.
    """
    if chosen.run is None:
        wanted = "refused" if chosen.refused else "awaiting"
        return [approval for approval in known if approval.decision == wanted]
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
    """Ask the user for a decision; return True for approval, False for refusal, or None to leave the plan undecided.

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
    """Ask for the reason for a refusal and return it; it may be empty."""
    try:
        return plain(input("why? [for this hospital's audit log, never sent; Enter: no reason] ").strip()[:200])
    except EOFError:
        return ""


def lines(facts: PlanFacts) -> Iterator[str]:
    """Yield the lines of a plan's sheet; a long fact takes several lines."""
    yield decision(facts.approval)
    for part in sheet(facts):
        if part.title:
            yield f"  {part.title}"
        for fact in part.facts:
            sentence = " ".join(fact.sentence.split())  # no gap in a word of the coordinator's ends a terminal's line
            folded = textwrap.wrap(sentence, LONGEST_LINE) if fact.folded else [sentence]
            for number, line in enumerate(folded):
                yield f"    {'' if number else fact.name:<{WIDTH}}{line}"
