"""`caucus-party approve`: shows what a plan asks about this hospital's records, to the person who decides on it.

The sheet comes from `plan_sheet.py`, and `caucus-party page` shows the same sheet.
"""

import argparse
import sys
import textwrap
from collections.abc import Iterator

from client.approvals import PlanApproval, approvals, decide
from client.deploy.account import account
from client.deploy.plan_cards import Card, Unreadable, plan_cards
from client.deploy.plan_sheet import decision, plain
from client.deploy.settings import HospitalSettings
from client.session import RefusalError
from common.errors import CaucusError, ConfigError
from common.page.words import CODES, ENGLISH
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
        "this run and this plan only; the coordinator then resumes the run. A plan beyond the limits cannot be "
        "approved before the limit is changed. A decision can be changed: a plan that was refused is shown with "
        "--refused, any with --run. A run that is refused after it began stops at its next question; what was answered "
        "cannot be taken back. Each decision is a line of the audit log: who, when, from what to what, and why if "
        "--reason says so.",
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
    parser.add_argument("--language", choices=[*CODES], default=ENGLISH, help="language of the sheet (%(default)s)")


def _approve(chosen: argparse.Namespace) -> Iterator[str]:
    settings = HospitalSettings.load(chosen.folder)
    known = approvals(settings.private)
    plans = _chosen(chosen, known)
    # To refuse, no plan needs to be read.
    cards = [] if chosen.no else plan_cards(settings, plans, known, chosen.language)
    if chosen.json:
        yield as_json([_for_json(card) for card in cards])
        return
    if not plans:
        yield "no plan was refused" if chosen.refused else "no plan awaits approval"
    if chosen.run is None and not chosen.refused:
        yield from _refused(known)
    for entry in plans if chosen.no else ():
        yield _line(decide(settings.private, entry, approve=False, by=account(), reason=chosen.reason))
    not_allowed: list[str] = []
    for card in cards:
        yield from lines(card)
        ended = card.approval.state == "ended" and not chosen.yes  # to approve it is an error, which `decide` raises
        if isinstance(card, Card) and not chosen.list and not ended:
            try:
                yield _decided(chosen, settings, card)
            except RefusalError as error:
                not_allowed.append(str(error))
    if not_allowed:
        raise CaucusError(". ".join(not_allowed))


def _refused(known: list[PlanApproval]) -> Iterator[str]:
    refused = [approval for approval in known if approval.state == "refused"]
    yield from map(decision, refused)
    if refused:
        yield "refused plans are shown in full, and can be approved, with --refused"


def _decided(chosen: argparse.Namespace, settings: HospitalSettings, card: Card) -> str:
    """Store the decision from the command line or a prompt; return a line with the decision, which may be none.

    Raises:
        RefusalError: The plan must not be approved, or the audit log is full.
    """
    approve = True if chosen.yes else _asked(card.approval)
    if approve is None:
        return _line(card.approval)
    if approve:
        card.check_allowed()
    reason = chosen.reason or ("" if approve else _asked_why())
    return _line(decide(settings.private, card.approval, approve=approve, by=account(), reason=reason))


def _line(entry: PlanApproval) -> str:
    return f"{entry.decision}: run {plain(entry.run)}"


def _for_json(card: Card | Unreadable) -> dict[str, object]:
    if isinstance(card, Card):
        return card.facts.plain()
    names = ("run", "plan_digest", "decision", "by", "decided", "reason", "first_seen")
    return {name: getattr(card.approval, name) for name in names} | {"cannot_be_read": card.problem}


def _chosen(chosen: argparse.Namespace, known: list[PlanApproval]) -> list[PlanApproval]:
    """Return the plans to show.

    Raises:
        ConfigError: No plan of the run is known.
    """
    if chosen.run is None:
        wanted = "refused" if chosen.refused else "awaiting"
        return [approval for approval in known if approval.state == wanted]
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


def lines(card: Card | Unreadable) -> Iterator[str]:
    """Yield the lines of a plan's sheet; a long fact takes several lines."""
    if isinstance(card, Unreadable):
        yield card.sentence
        return
    yield card.line
    for part in card.parts:
        if part.title:
            yield f"  {part.title}"
        for fact in part.facts:
            sentence = " ".join(fact.sentence.split())  # no gap in a word of the coordinator's ends a terminal's line
            folded = textwrap.wrap(sentence, LONGEST_LINE) if fact.folded else [sentence]
            for number, line in enumerate(folded):
                yield f"    {'' if number else fact.name:<{WIDTH}}{line}"
