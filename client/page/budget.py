"""What this hospital has spent in each run and over time, as its limits count it, and the ledger that records it.

The plot over time is drawn without a script: the sum is constant between charges, and a line above shows the limit. Its
coordinates are in user units of an SVG view box, with y pointing down.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby

from client.deploy.audit_reading import LogLine, Questions, accepted_ledgers, answered_questions
from client.deploy.lost_charges import UNKNOWN
from client.deploy.preflight import place_of_note
from client.deploy.settings import HospitalSettings
from client.deploy.status import LedgerSpending, spending_of
from client.guard import Limits
from common.ledger.chain import Event
from common.ledger.ledger import Head
from common.ledger.log import Entry

MOST_EVENTS = 50
"""Number of most recent events that the page shows; the exported file has all events."""
MOST_STEPS = 100
"""Maximum number of steps in the plot. If there are more, only every n-th step and the last step are drawn."""
WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 708, 16, 262
_TICKS = 5
_ABOVE = 1.08
"""Upper end of the y axis, relative to the largest value that is drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpending:
    """Epsilon and charges of one run.

    Attributes:
        number: The run's number on the page, from 1; runs are numbered in the order of their first charges.
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
class StepPlot:
    """A drawing of a sum over time.

    Attributes:
        path: The steps, as data of an SVG path.
        marks: Position (x, y) of each step, and the number of its run in the table, from 1.
        limit: y coordinate of the limit; None if there is no limit.
        y_ticks: y and text of each tick.
        x_ticks: x, text and anchor of the first and the last time.
    """

    path: str
    marks: tuple[tuple[float, float, int], ...]
    limit: float | None
    y_ticks: tuple[tuple[float, str], ...]
    x_ticks: tuple[tuple[float, str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetView:
    """The budget of all runs together.

    Attributes:
        limits: The hospital's limits, which count what is spent; their `separate_data_sets` says that the service
            counts only data sets that share a record with the current one, so that its figures may be lower.
        right_guesses: Percentage of right guesses whether a record took part, by somebody who sees all answers so far.
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


def step_plot(steps: Sequence[tuple[str, int, float]], limit: float | None) -> StepPlot | None:
    """Return the layout of a plot with the limit of the sum; None if there is nothing to draw, or a sum is infinite.

    Each step is a time (ISO 8601), the number of the run, and the sum from that time on, in chronological order.
    """
    if not steps or not all(math.isfinite(total) for _, _, total in steps):
        return None
    times = [datetime.fromisoformat(when).timestamp() for when, _, _ in steps]
    first, last = times[0], max(times[-1], times[0] + 1)
    top = _ABOVE * max(steps[-1][2], limit or 0)

    def x(time: float) -> float:
        # The first step is not on the axis, where it could not be seen.
        return round(LEFT + (RIGHT - LEFT) * (0.04 + 0.92 * (time - first) / (last - first)), 1)

    def y(value: float) -> float:
        return round(BOTTOM - (BOTTOM - TOP) * value / top, 1)

    marks = tuple((x(time), y(total), run) for time, (_, run, total) in zip(times, steps, strict=True))
    steps_up = "".join(f"H{across}V{up}" for across, up, _ in marks)
    tick = _tick(top)
    return StepPlot(
        path=f"M{LEFT} {y(0)}{steps_up}H{RIGHT}",
        marks=marks,
        limit=None if limit is None else y(limit),
        y_ticks=tuple((y(number * tick), f"{number * tick:g}") for number in range(int(top / tick) + 1)),
        x_ticks=((x(first), _day(first), "start"), (x(last), _day(last), "end"))
        if _day(first) != _day(last)
        else ((x(first), _day(first), "start"),),
    )


def _tick(top: float) -> float:
    """Return the distance between ticks: 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(top / _TICKS))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= top / _TICKS)


def _day(time: float) -> str:
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d}"
