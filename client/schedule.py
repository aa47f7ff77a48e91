"""A schedule for replies that depends on public numbers alone, so that their time reveals nothing about the records.

How long an answer takes depends on the records: on their number and, if candidates lie at equal distances from a record
that somebody knows, on whether that record is present (votes are then computed exactly). So a reply to an opening or a
question leaves T after its message came, or, if it is late, at the first of 2 T, 4 T, ... at which it is ready. T is
computed from the question, the plan and the number of records that the hospital declares to all
([common/schedule.py](../common/schedule.py)). The reply to a closing, which frees the run's records, follows the same
schedule. A refusal leaves on the same schedule as an answer, but a refusal that public facts alone decide, such as that
of a question not planned or out of order, leaves as soon as possible: nobody else has to wait for it.

Remaining leaks. A reply that is late shows that the machine was slow or busy, and its time up to the next doubling; the
log says so. A coordinator may try to make replies late, by work for other programs on the machine, and then learns how
close to T the hospital's own work is. A message that comes while a service starts waits until the records are embedded,
so the time of its reply tells roughly how many there are. The time for texts of a hospital's own model is not limited,
but rounded up to T, 2 T, 4 T, ... Lengths of texts are counted to their end: where texts have tens of thousands of
words, such an answer is late. Other users of the machine can measure that the processor works less while a reply waits.
Other messages neither use records nor free them.
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
        records: Largest number of records that the party may have, which is public.
        clock: Function that returns seconds that never decrease.
        sleep: Function that waits for the given seconds; the default wait ends early at `stop`.
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
        """End all waits, once no reply can leave any longer."""
        self._stopped.set()

    def wait(self, came: float, body: m.Request | m.Reply, plan: Plan | None, index: int = 0) -> None:
        """Wait until the reply to a message may leave.

        Args:
            came: Time of the message's arrival, as `clock` tells it, in seconds.
            body: The message.
            plan: The plan that it belongs to; None if public facts alone decide that it is refused.
            index: Number of the query in the plan.
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
