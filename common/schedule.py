"""How long a hospital's reply takes: a function of public numbers alone, which both sides know.

A hospital sends its replies on this schedule ([client/schedule.py](../client/schedule.py)), and the coordinator waits
that long before its own timeout begins. The numbers are the question's kind and shapes, and the most records of a
hospital. The time is four times what the slowest records of that number took where we tried
(`simulations/laboratory/audit/timing.py`).
"""

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

BASE_SECONDS = 0.1
"""What a reply takes whatever is asked: the ledger's transactions, the log's line, the records' file's digest."""
OPERATION_SECONDS = 1e-9
"""Of one multiplication, added and compared: four times as much as measured for the slowest records."""
_RECORD, _TEXT, _TERM, _NUMBER = 40_000, 400_000, 20_000, 2_000
"""Operations for a record, for a text that is scanned, for a term of a vocabulary, for a number of the answer."""
_PAIR, _READ = 128, 32
"""Operations for a record and a candidate besides their product, and for each number that is read from the message."""
_WIDTH = 1024
"""Numbers of a record's vector, where the question has no vectors that tell."""


def seconds(body: m.Request | m.Reply, records: int) -> float | None:
    """Seconds from a message to its reply; None for messages that touch no record.

    Args:
        body: The message.
        records: The most records that the hospital declares.
    """
    if isinstance(body, m.Open):
        return BASE_SECONDS + OPERATION_SECONDS * _RECORD * records
    if not isinstance(body, m.Ask):
        return None
    numbers = _NUMBER * body.query.length if not isinstance(body.query, Texts) else 0
    return BASE_SECONDS + OPERATION_SECONDS * (_RECORD * records + numbers + operations(body.query, records))


@singledispatch
def operations(query: Query, records: int) -> int:
    """About how many multiplications an answer takes at most.

    Args:
        query: Of which the shapes of the arrays count.
        records: The most records of a party.
    """
    raise NotImplementedError(type(query).__name__)


@operations.register
def _(query: Votes, records: int) -> int:
    candidates, dimensions = query.vectors.shape
    return int(candidates * (records * (dimensions + _PAIR) + _READ * dimensions))


@operations.register
def _(query: ClassSums, records: int) -> int:
    directions, dimensions = query.basis.shape
    return int(directions * records * (dimensions + _PAIR) + _READ * (query.basis.size + query.centres.size))


@operations.register
def _(query: CorrectCount, records: int) -> int:
    classes, dimensions = query.weights.shape
    return int(classes * (records * (dimensions + _PAIR) + _READ * dimensions))


@operations.register
def _(query: SeedChoice, records: int) -> int:
    del records  # so many choose as the plan says
    texts, dimensions = query.vectors.shape
    return int(texts * (query.spec.choices * (dimensions + 8 * _PAIR) + _READ * dimensions))


@operations.register
def _(query: Sketch, records: int) -> int:
    terms, rows, columns = len(query.vectors), *query.frequencies.shape
    products = min(terms, records * query.spec.first) * rows * (columns + _PAIR)
    means = records * rows * query.spec.first * _PAIR
    read = query.vectors.size + query.frequencies.size
    return _TERM * terms + _TEXT * records + int(products + means) + _READ * read


@operations.register
def _(query: Vocabulary, records: int) -> int:
    return _TERM * query.length + _TEXT * records


@operations.register
def _(query: SelfSimilarity, records: int) -> int:
    del query
    return records * _PAIR * _WIDTH


@operations.register(LengthHistogram)
@operations.register(LengthRange)
def _(query: LengthHistogram | LengthRange, records: int) -> int:
    del query
    return _TEXT * records


@operations.register(LabelHistogram)
@operations.register(Texts)
def _(query: LabelHistogram | Texts, records: int) -> int:
    del query, records
    return 0
