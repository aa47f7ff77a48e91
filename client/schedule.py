"""When a reply leaves: on a schedule that depends on public numbers alone, so that time tells nothing of the records.

How long an answer takes depends on the records: on their number, and where candidates lie at one distance from a record
that somebody knows, on whether it is there (votes are then computed exactly). So a reply to an opening or a question
leaves T after its message came, or, if it is late, at the first of 2 T, 4 T, ... at which it is ready. T is computed
from the question's kind and shapes, the agreed encoder and the most records that the hospital declares to all: four
times what the slowest records of that number took where we tried (`simulations/audit/timing.py`). A refusal leaves on
the same schedule as an answer.

What remains. A reply that is late shows that the machine was slow or busy, and the log says so. Texts of a hospital's
own model take as long as they take, on the grid of 0.1, 0.2, 0.4, ... seconds. That the processor works less while a
reply waits can be measured by whoever shares the machine. Other messages touch no record.
"""

import logging
import time
from collections.abc import Callable
from functools import singledispatch

from common import messages as m
from common.queries.class_sums import ClassSums
from common.queries.correct_count import CorrectCount
from common.queries.histograms import LabelHistogram, LengthHistogram, Vocabulary
from common.queries.length_range import LengthRange
from common.queries.page import Query
from common.queries.seed_choice import SeedChoice
from common.queries.self_similarity import SelfSimilarity
from common.queries.sketch import Sketch
from common.queries.texts import Texts
from common.queries.votes import Votes

log = logging.getLogger("caucus.party")

BASE_SECONDS = 0.1
"""What a reply takes whatever is asked: the ledger's transactions, the log's line, the records' file's digest."""
OPERATION_SECONDS = 1e-9
"""Of one multiplication, added and compared: four times as much as measured for the slowest records."""
_RECORD, _TEXT, _TERM, _NUMBER = 40_000, 400_000, 20_000, 2_000
"""Operations for a record, for a text that is scanned, for a term of a vocabulary, for a number of the answer."""
_PAIR, _READ = 128, 32
"""Operations for a record and a candidate besides their product, and for each number that is read from the message."""


class Schedule:
    """The schedule of one party.

    Args:
        records: The most records that it may have: a public number.
        dimensions: Of the agreed encoder.
        clock: Seconds that only grow.
        sleep: Waits so many seconds.
    """

    def __init__(
        self,
        *,
        records: int,
        dimensions: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.clock = clock
        self._records, self._dimensions = records, dimensions
        self._sleep = sleep

    def seconds(self, body: m.Request | m.Reply) -> float | None:
        """T of a message's reply; None for messages that touch no record."""
        if isinstance(body, m.Open):
            return BASE_SECONDS + OPERATION_SECONDS * _RECORD * self._records
        if not isinstance(body, m.Ask):
            return None
        numbers = _NUMBER * body.query.length if not isinstance(body.query, Texts) else 0
        work = _RECORD * self._records + numbers + operations(body.query, self._records, self._dimensions)
        return BASE_SECONDS + OPERATION_SECONDS * work

    def wait(self, came: float, body: m.Request | m.Reply) -> None:
        """Wait until the reply to a message may leave that came at this reading of the clock."""
        step = self.seconds(body)
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


@singledispatch
def operations(query: Query, records: int, dimensions: int) -> int:
    """About how many multiplications an answer takes at most.

    Args:
        query: Of which the shapes of the arrays count.
        records: The most records of a party.
        dimensions: Of their vectors.
    """
    raise NotImplementedError(type(query).__name__)


@operations.register
def _(query: Votes, records: int, dimensions: int) -> int:
    return len(query.labels) * (records * (dimensions + _PAIR) + _READ * dimensions)


@operations.register
def _(query: ClassSums, records: int, dimensions: int) -> int:
    return len(query.basis) * records * (dimensions + _PAIR) + _READ * (query.basis.size + query.centres.size)


@operations.register
def _(query: CorrectCount, records: int, dimensions: int) -> int:
    return len(query.weights) * (records * (dimensions + _PAIR) + _READ * dimensions)


@operations.register
def _(query: SeedChoice, records: int, dimensions: int) -> int:
    del records  # so many choose as the plan says
    return len(query.vectors) * (query.spec.choices * (dimensions + 8 * _PAIR) + _READ * dimensions)


@operations.register
def _(query: Sketch, records: int, dimensions: int) -> int:
    del dimensions  # the frequencies' own
    terms, rows, columns = len(query.vectors), *query.frequencies.shape
    products = min(terms, records * query.spec.first) * rows * (columns + _PAIR)
    means = records * rows * query.spec.first * _PAIR
    read = query.vectors.size + query.frequencies.size
    return _TERM * terms + _TEXT * records + int(products + means) + _READ * read


@operations.register
def _(query: Vocabulary, records: int, dimensions: int) -> int:
    del dimensions
    return _TERM * query.length + _TEXT * records


@operations.register
def _(query: SelfSimilarity, records: int, dimensions: int) -> int:
    del query
    return records * _PAIR * dimensions


@operations.register(LengthHistogram)
@operations.register(LengthRange)
def _(query: LengthHistogram | LengthRange, records: int, dimensions: int) -> int:
    del query, dimensions
    return _TEXT * records


@operations.register(LabelHistogram)
@operations.register(Texts)
def _(query: LabelHistogram | Texts, records: int, dimensions: int) -> int:
    del query, records, dimensions
    return 0
