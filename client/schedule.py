"""When a reply leaves: on a schedule that depends on public numbers alone, so that time tells nothing of the records.

How long an answer takes depends on the records: on their number, and where candidates lie at one distance from a record
that somebody knows, on whether it is there (votes are then computed exactly). So a reply to an opening or a question
leaves T after its message came, or, if it is late, at the first of 2 T, 4 T, ... at which it is ready. T is computed
from what is asked and the most records that the hospital declares to all ([common/schedule.py](../common/schedule.py)).
A refusal leaves on the same schedule as an answer.

What remains. A reply that is late shows that the machine was slow or busy, and the log says so. Texts of a hospital's
own model take as long as they take, on the grid of 0.1, 0.2, 0.4, ... seconds. That the processor works less while a
reply waits can be measured by whoever shares the machine. Other messages touch no record.
"""

import logging
import time
from collections.abc import Callable

from common import messages as m
from common.schedule import seconds

log = logging.getLogger("caucus.party")


class Schedule:
    """The schedule of one party.

    Args:
        records: The most records that it may have: a public number.
        clock: Seconds that only grow.
        sleep: Waits so many seconds.
    """

    def __init__(
        self, records: int, *, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.clock = clock
        self._records = records
        self._sleep = sleep

    def wait(self, came: float, body: m.Request | m.Reply) -> None:
        """Wait until the reply to a message may leave that came at this reading of the clock."""
        step = seconds(body, self._records)
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
