"""A schedule for replies that depends on public numbers alone, so that their timing reveals nothing about the records.

The time for an answer depends on the records: on their number and, if candidates are at equal distances from a record
that somebody knows, on whether that record is present (its votes are then computed exactly). So a reply to an opening
or a question is sent a time T after its message came or, if it is not ready by then, at the first of 2 T, 4 T, ... at
which it is ready. T is computed from the question, the plan and the number of records that the hospital publicly
declares ([common/schedule.py](../common/schedule.py)). The reply to a closing, which frees the run's records, follows
the same schedule. A refusal follows the same schedule as an answer, unless public facts alone decide it, as for a
question that is unplanned or out of order. Such a refusal is sent as soon as possible, since nobody else has to wait
for it.

Remaining leaks. A late reply reveals that the machine was slow or busy, and how long the answer took, up to the next
doubling; it is logged. A coordinator may try to delay replies by giving other programs on the machine work, and then
learns how close to T the hospital's own work is. It chooses T and the public work by its plans, so from the share of
late replies to many plans it could learn more exactly how long the private work takes: for an opening, to read the file
of records. A message that comes while a service starts waits until the records are embedded, so the time of its reply
roughly reveals how many records there are. The time for texts from a hospital's own model is not limited, but rounded
up to T, 2 T, 4 T, ... Counting the length of a text takes time in proportion to it, so an answer about texts with tens
of thousands of words is late. Other users of the machine can measure that the processor works less while a reply waits.
All other kinds of messages neither use nor free records.
"""

import logging
import time
from collections.abc import Callable
from threading import Event

from common import messages as m
from common.plan.plan import Plan
from common.schedule import seconds

log = logging.getLogger("caucus.party")


class Schedule:
    """The schedule of one party.

    Args:
        records: Maximum number of records that the party may have, which is public.
        clock: Function that returns the time in seconds and never decreases.
        sleep: Function that waits for the given number of seconds; the default wait ends early at `stop`.
    """

    def __init__(
        self,
        records: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        self.clock = clock
        self._records = records
        self._stopped = Event()
        self._sleep = sleep or self._stopped.wait

    def stop(self) -> None:
        """End all waits; called once no reply can be sent any longer."""
        self._stopped.set()

    def wait(self, came: float, body: m.Request | m.Reply, plan: Plan | None, index: int = 0) -> None:
        """Wait until the reply to a message that came at `came` (by `clock`, in seconds) may be sent.

        The plan is None if public facts alone decide that the message is refused; `index` is that of its query.
        """
        step = seconds(body, self._records, plan, index)
        if step is None:
            return
        taken, due = self.clock() - came, step
        while due < taken:
            due *= 2
        if due > step:
            log.warning(
                "a reply was ready after more than the %.1f s of its schedule and leaves after %.1f s: this machine is "
                "slow or busy",
                step,
                due,
            )
        self._sleep(due - taken)
