"""What has become of a plan, in sentences, for its sheet and for the page's lists of decided plans."""

from collections.abc import Iterator

from client.approval.amounts import AnsweredSoFar
from client.approval.entries import PlanApproval
from client.approval.facts import round_up
from common.page.words import ENGLISH, catalogue, spelt
from common.phrases import shorten_exponent
from common.system.log_lines import escaped_line, utc


def end_of_run(approval: PlanApproval, language: str = ENGLISH, *, beyond: str = "") -> Iterator[str]:
    """Yield why the run is over or may be, and what a decision then means; nothing if the run goes on.

    `beyond` is why the limits refuse the plan, which then cannot be approved; empty if they do not.
    """
    say = catalogue(__package__, language).over
    if approval.closed:
        yield say.closed.format(utc(approval.closed))
        if approval.ended:
            yield say.ended_before.format(utc(approval.ended))
    elif approval.ended:
        yield say.ended.format(utc(approval.ended))
        if approval.decision != "awaiting":
            yield say.holds
        elif not beyond:
            yield say.no_harm
    elif approval.quiet_since:
        yield say.quiet.format(utc(approval.quiet_since))
        if not beyond:
            yield say.no_harm


def limits_refuse(approval: PlanApproval, beyond: str, language: str = ENGLISH) -> str:
    """Return that the limits refuse a plan, for this reason, before a person's approval or in spite of it."""
    here = catalogue(__package__, language).here
    sentence = here.beyond_approved if approval.decision == "approved" else here.beyond
    return str(sentence.format(escaped_line(beyond)))


def given_answers(approval: PlanApproval, so_far: AnsweredSoFar, language: str = ENGLISH) -> Iterator[str]:
    """Yield what this hospital has answered in the run, and what it cost."""
    say = catalogue(__package__, language).given
    yield say.counts.format(so_far.answered, so_far.charged)
    if so_far.charged:
        delta = spelt(shorten_exponent(f"{so_far.delta:g}"), language)
        yield say.cost.format(spelt(round_up(so_far.epsilon), language), delta)
    if so_far.uncharged:
        yield say.lost.format(so_far.uncharged)
    if so_far.answered and approval.over:
        yield say.kept
    if so_far and approval.decision == "refused" and not approval.over:
        yield say.completed
