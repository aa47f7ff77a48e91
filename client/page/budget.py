"""What this hospital has spent in each run and over time, as its limits count it, and the ledger that records it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from client.deploy.audit_reading import LogLine, Questions, accepted_ledgers, answered_questions
from client.deploy.lost_charges import UNKNOWN
from client.deploy.preflight import place_of_note
from client.deploy.settings import HospitalSettings
from client.deploy.status import LedgerSpending, spending_of
from client.guard import Limits
from client.page.steps import StepPlot, step_plot
from common.ledger.chain import Event
from common.ledger.ledger import Head
from common.ledger.log import Entry

MOST_EVENTS = 50
"""Number of most recent events that the page shows; the exported file has all events."""
MOST_STEPS = 100
"""Maximum number of steps in the plot. If there are more, only every n-th step and the last step are drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpending:
    """Epsilon and charges of one run.

    Attributes:
        number: The run's number on the page, from 1; runs are numbered in the order of their first charges.
        run: The run's name.
        answered: Number of questions that were answered, by the audit log.
        answers: Number of answers that were charged.
        first: Time of the first answer, or of the charges if `ledger accept` made them all and no answer is known.
        last: Time of the last one.
        epsilon: Epsilon of this run alone, at the page's delta.
    """

    number: int
    run: str
    answered: int
    answers: int
    first: str
    last: str
    epsilon: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetView:
    """The budget of all runs together.

    Attributes:
        limits: The hospital's limits, which count what is spent; their `separate_data_sets` says that the service
            counts only data sets that share a record with the current one, so that its figures may be lower.
        spending: What all runs together have spent, as `caucus-party status` prints it.
        right_guesses: Percentage of right guesses whether a record took part, by somebody who sees all answers so far.
        runs: Spending by run.
        plot: Spending over time; None if there is nothing to draw.
        head: Head of the ledger, which was checked from end to end; None if there is no ledger.
        noted: The head that is noted outside the ledger; None if there is no note.
        place: Where it is noted, and whether a restore may bring an older note back, in the words of `check`.
        accepted: Lines of the audit log about ledgers that a person accepted, oldest first.
        events: The last events, newest first.
    """

    limits: Limits
    spending: LedgerSpending
    right_guesses: float
    runs: tuple[RunSpending, ...]
    plot: StepPlot | None
    head: Head | None
    noted: str | None
    place: str
    accepted: tuple[LogLine, ...]
    events: tuple[Event, ...]


def budget(settings: HospitalSettings) -> BudgetView:
    """Return the budget, computed from the hospital's ledger and limits.

    Raises:
        LedgerError: The ledger was edited, is damaged or cannot be read.
        ConfigError: The folder of the note of the ledger's head is missing.
        OSError: The audit log cannot be read.
    """
    limits = settings.party.limits
    ledger, problem = settings.inspected_ledger()
    entries = sorted(ledger.entries(), key=lambda entry: entry.charged) if ledger else []
    answered = answered_questions(settings.audit_log)
    runs = tuple(_runs(entries, limits, answered))
    numbers = {run.run: run.number for run in runs}
    return BudgetView(
        limits=limits,
        spending=spending_of(ledger, problem, answered, limits),
        right_guesses=limits.guesses(entry.cost for entry in entries).right,
        runs=runs,
        plot=step_plot(list(_steps(entries, limits, numbers)), limits.lifetime_epsilon),
        head=ledger.head() if ledger else None,
        noted=settings.noted_head.read(),
        place=place_of_note(settings).detail,
        accepted=accepted_ledgers(settings.private),
        events=ledger.events()[: -MOST_EVENTS - 1 : -1] if ledger else (),
    )


def _runs(entries: Sequence[Entry], limits: Limits, answered: Questions) -> Iterator[RunSpending]:
    questions = Counter[str]()
    for (run, _), indices in answered.items():
        questions[run] += len(indices)
    of_run: dict[str, list[Entry]] = {}
    for entry in entries:
        of_run.setdefault(entry.run, []).append(entry)
    for number, (run, charged) in enumerate(of_run.items(), 1):
        times = [when for entry in charged if (when := _answered(entry, answered))] or [charged[0].charged]
        yield RunSpending(
            number=number,
            run=run,
            answered=questions[run],
            answers=len(charged),
            first=min(times),
            last=max(times),
            epsilon=limits.spent(entry.cost for entry in charged),
        )


def _answered(entry: Entry, answered: Questions) -> str:
    """Return when a charged question was answered; empty if that is not known, as of one that `accept` charged."""
    when = answered.get((entry.run, entry.plan_digest.hex()), {}).get(entry.index, "")
    return when or ("" if entry.query_digest == UNKNOWN else entry.charged)


def _steps(entries: Sequence[Entry], limits: Limits, numbers: dict[str, int]) -> Iterator[tuple[str, int, float]]:
    """Yield the time, the run's number and the epsilon spent so far after each group of successive charges to one run.

    If there are more than `MOST_STEPS` groups, only some are kept, including the last.
    """
    ends, charged = [], 0
    for run, stretch in groupby(entries, key=lambda entry: entry.run):
        charged += len(list(stretch))
        ends.append((charged, numbers[run]))
    each = -(-len(ends) // MOST_STEPS) if ends else 1
    for charged, number in ends[::-1][::each][::-1]:  # from the end, so that the last is among them
        yield entries[charged - 1].charged, number, limits.spent(entry.cost for entry in entries[:charged])
