"""`caucus-party approve`: shows what a plan asks about this hospital's records, to the person who decides on it.

The sheet comes from `sheet.py`, and `caucus-party page` shows the same sheet.
"""

import argparse
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import asdict

from client.approval.entries import PlanApproval, approvals, decide
from client.approval.facts import PlanFacts, round_up
from client.approval.questions import question_in_words
from client.approval.sheet import PlanSheet, coordinator_sight, plan_sheets
from client.approval.standing import end_of_run
from client.audit_log import account
from client.deploy.settings import HospitalSettings
from client.records import shown_labels
from client.session import RefusalError
from common.errors import CaucusError, ConfigError
from common.page.words import CODES, ENGLISH, catalogue
from common.plan.facts import not_covered
from common.system.commands import Commands, add_command, add_folder, as_json
from common.system.log_lines import escaped_line

WIDTH = 17
"""Width, in characters, of the column with the facts' names."""
LONGEST_LINE = 100
"""Maximum width, in characters, of a line of a fact."""
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
        "--refused, any with --run. A run that is refused after it began stops at its next query; what was answered "
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
    plans = _chosen_plans(chosen, known)
    # To refuse, no plan needs to be read.
    sheets = [] if chosen.no else plan_sheets(settings, plans, known, chosen.language)
    if chosen.json:
        yield as_json([_json_values(sheet) for sheet in sheets])
        return
    if not plans:
        yield "no plan was refused" if chosen.refused else "no plan awaits approval"
    if chosen.run is None and not chosen.refused:
        yield from _refused_plans(known)
    for entry in plans if chosen.no else ():
        yield _outcome(decide(settings.private, entry, approve=False, by=account(), reason=chosen.reason))
    not_allowed: list[str] = []
    for sheet in sheets:
        yield from terminal_lines(sheet)
        ended = sheet.approval.state == "ended" and not chosen.yes  # to approve it is an error, which `decide` raises
        if sheet.facts and not chosen.list and not ended:
            try:
                yield _ask_and_decide(chosen, settings, sheet.facts)
            except RefusalError as error:
                not_allowed.append(str(error))
    if not_allowed:
        raise CaucusError(". ".join(not_allowed))


def _refused_plans(known: list[PlanApproval]) -> Iterator[str]:
    refused = [approval for approval in known if approval.state == "refused"]
    yield from (approval.line for approval in refused)
    if refused:
        yield "refused plans are shown in full, and can be approved, with --refused"


def _ask_and_decide(chosen: argparse.Namespace, settings: HospitalSettings, facts: PlanFacts) -> str:
    """Store the decision from the command line or a prompt; return a line with the decision, which may be none.

    Raises:
        RefusalError: The plan must not be approved, or the audit log is full.
    """
    approve = True if chosen.yes else _ask_decision(facts.approval)
    if approve is None:
        return _outcome(facts.approval)
    if approve:
        facts.check_allowed()
    reason = chosen.reason or ("" if approve else _ask_reason())
    return _outcome(decide(settings.private, facts.approval, approve=approve, by=account(), reason=reason))


def _outcome(entry: PlanApproval) -> str:
    return f"{entry.decision}: run {escaped_line(entry.run)}"


def _chosen_plans(chosen: argparse.Namespace, known: list[PlanApproval]) -> list[PlanApproval]:
    """Return the plans to show.

    Raises:
        ConfigError: No plan of the run is known.
    """
    if chosen.run is None:
        wanted = "refused" if chosen.refused else "awaiting"
        return [approval for approval in known if approval.state == wanted]
    of_run = [approval for approval in known if approval.run == chosen.run]
    if not of_run:
        do = "Choose one that --list shows"
        raise ConfigError("the coordinator has not opened this run here", got=chosen.run, do=do)
    return of_run


def _ask_decision(approval: PlanApproval) -> bool | None:
    """Ask the user for a decision; return True for approval, False for refusal, or None to leave the plan undecided.

    Raises:
        ConfigError: There is no terminal to ask at.
    """
    if not sys.stdin.isatty():
        raise ConfigError("no decision was given", do="Run the command in a terminal, or add --yes or --no")
    later = "decide later" if approval.decision == "awaiting" else f"leave it {approval.decision}"
    while True:
        try:
            reply = input(f"take part? [y/n, Enter: {later}] ").strip().lower()
        except EOFError:
            return None
        if reply in REPLIES:
            return REPLIES[reply]


def _ask_reason() -> str:
    """Ask for the reason for a refusal and return it; it may be empty."""
    try:
        return escaped_line(input("why? [for this hospital's audit log, never sent; Enter: no reason] ").strip()[:200])
    except EOFError:
        return ""


def terminal_lines(sheet: PlanSheet) -> Iterator[str]:
    """Yield the lines of a plan's sheet; a long fact takes several lines."""
    if sheet.facts is None:
        yield f"{sheet.approval.line}; this plan cannot be read here ({sheet.problem}); you can refuse it"
        return
    yield sheet.approval.line
    for section in sheet.sections:
        if section.title:
            yield f"  {section.title}"
        for fact in section.facts:
            name = fact.name
            for sentence in fact.sentences:
                whole = " ".join(sentence.split())  # no gap in a word of the coordinator's ends a terminal's line
                for line in textwrap.wrap(whole, LONGEST_LINE, break_on_hyphens=False):
                    yield f"    {name:<{WIDTH}}{line}"
                    name = ""


def _json_values(sheet: PlanSheet) -> dict[str, object]:
    """Return the facts about a plan as values for JSON."""
    names = ("run", "plan_digest", "decision", "by", "decided", "reason", "first_seen")
    entry = {name: getattr(sheet.approval, name) for name in names}
    facts = sheet.facts
    if facts is None:
        return entry | {"cannot_be_read": sheet.problem}
    plan, promised, budget, records = facts.plan, facts.guarantee, facts.budget, facts.records
    released = promised.readers_guesses
    of_epsilon = {
        "epsilon": facts.planned,
        "epsilon_released": released,
        "epsilon_against": promised.insiders_guesses,
        "epsilon_alone": facts.alone,
    }
    return entry | {
        "run_before": facts.before.run if facts.before else None,
        "changes": list(facts.changes),
        **facts.stated,
        "method": plan.method,
        "hospitals": list(facts.hospitals),
        "hospitals_not_on_the_roster": facts.unknown,
        "masks": "none" if not plan.secure else "malicious" if plan.malicious else "semi-honest",
        "coordinator": ". ".join(coordinator_sight(facts)),
        "colluders_against_masks": plan.largest_coalition if plan.secure else None,
        "threshold": plan.threshold,
        "survivors": plan.survivors,
        "colluders": facts.colluders,
        "attempts": plan.max_attempts,
        "unit": plan.unit,
        "max_records": promised.adjacency.max_records,
        "delta": plan.delta,
        "epsilon": plan.epsilon,
        "epsilon_released": promised.released_epsilon,
        "epsilon_if_all_add_noise": promised.if_all_add_noise_epsilon,
        "epsilon_against": promised.party_epsilon,
        "epsilon_alone": facts.epsilon_alone,
        "of_user": asdict(facts.of_user) if facts.of_user else None,
        "corrupt": promised.corrupt_for_readers,
        "strength": released.strength,
        "right_guesses_percent": {name: guesses.right for name, guesses in of_epsilon.items()},
        "worst_guesses_percent": {name: guesses.worst for name, guesses in of_epsilon.items()},
        "beliefs_percent": {
            name: [asdict(belief) for belief in guesses.beliefs] for name, guesses in of_epsilon.items()
        },
        "own_texts": facts.own_texts,
        "not_stated_by_the_plan": catalogue(__package__).purpose.not_stated,
        "not_covered": not_covered(promised, round_up),
        "queries": [
            values | {"asks": question_in_words(query.spec)}
            for values, query in zip(plan.to_dict()["queries"], plan.queries, strict=True)
        ],
        "lifetime": {
            "limit": budget.limit,
            "delta": budget.delta,
            "before": budget.before,
            "after": budget.after,
            "left": budget.left,
            "right_guesses_percent": budget.guesses.right,
            "data_sets_apart": budget.apart,
            "problem": budget.problem,
        },
        "answered": facts.answered.answered,
        "charged": facts.answered.charged,
        "charges_lost": facts.answered.uncharged,
        "records": {
            "total": records.total,
            "taking_part": records.taking_part,
            "users": records.users,
            "most_records_of_user": records.most_of_user,
            "of_label": records.of_label,
            "labels_without_records": list(records.without),
            "not_asked_for": shown_labels(records.unasked),
        },
        "beyond_limits": facts.fit.beyond,
        "largest_epsilon_within_limits": facts.fit.epsilon,
        "may_be_over": ""
        if facts.approval.finished and not facts.approval.closed
        else ". ".join(end_of_run(facts.approval)),
    }
