"""The duration of a hospital's reply, which depends only on public numbers that both sides know.

A hospital sends its replies on this schedule ([client/schedule.py](../client/schedule.py)), and the coordinator waits
for the scheduled time before its own timeout begins. The numbers are the question's kind and shapes, the largest number
of records of a hospital, and, from the plan, the number of labels under which one record counts, the number of rounds
that need keys and the scale of the noise. Each kind of question was measured with a thousand records, and votes with
the slowest possible records (`simulations/laboratory/audit/timing.py`): they took about a quarter of the scheduled time
or less. A table from which noise is drawn, a vocabulary of the longest terms, or texts whose characters take long to
normalise can take up to half of the scheduled time. How many coins the choices of seeds need depends on the records and
on chance: `tosses` bounds it.
"""

import math
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from common import messages as m
from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.privacy.samplers import LAPLACE_REACH, LARGEST_TABLE, REACH
from common.queries.class_sums import ClassSums
from common.queries.correct_count import CorrectCount
from common.queries.histograms import LabelHistogram, LengthHistogram, Vocabulary
from common.queries.label_sets import LabelSets
from common.queries.length_range import LengthRange
from common.queries.page import Query
from common.queries.questionnaire import Questionnaire
from common.queries.section_order import SectionOrder
from common.queries.seed_choice import SeedChoice
from common.queries.self_similarity import SelfSimilarity
from common.queries.sketch import Sketch
from common.queries.terms import READ_CHARACTERS, READ_WORDS, decode_terms, words
from common.queries.texts import Texts
from common.queries.votes import Votes

BASE_SECONDS = 0.1
"""Seconds that any reply takes, for the ledger's transactions, the log line and the digest of the file of records."""
OPERATION_SECONDS = 1e-9
"""Seconds per multiplication, with its addition and comparison: four times the duration for the slowest records."""
_RECORD, _TEXT, _NUMBER = 40_000, 400_000, 2_000
"""Operations per record, per text in which words are counted or to which a question applies, and per number in the
answer or in the table of its noise."""
_WORD, _CHARACTER = 3_000, 400
"""Operations per word and per character of a text searched for terms; normalising may turn one character into 18."""
_TERM, _BYTE = 20_000, 1_000
"""Operations per term of a vocabulary, and per byte of it."""
_ROUND, _SLOW_NUMBER, _STEP = 250_000, 60_000, 128_000
"""Operations per round of secure aggregation (for its keys), per number whose noise is not drawn from a table, and per
length in the sparse vector technique, which may test each length once from below and once from above."""
_CHOICE, _TOSS = 300_000, 40_000
"""Operations per choice of a seed, whatever it is made among, and per coin that is tossed for it."""
_UNLIKELY = 20
"""Coins for choices are scheduled so that more are needed with probability below exp(-20) = 2e-9."""
_PAIR, _READ = 128, 32
"""Operations per pair of record and candidate besides their inner product, and per number read from the message."""
_WIDTH = 1024
"""Assumed dimension of a record's vector if the question has no vectors that determine it."""


def seconds(body: m.Request | m.Reply, records: int, plan: Plan | None, index: int = 0) -> float | None:
    """Return the seconds from a message to its reply; None for messages that neither use nor release records.

    `records` is the maximum number that the hospital declares. The plan is None for a message that is refused
    immediately, independently of the records. `index` is that of the query in the plan.
    """
    if not isinstance(body, m.Open | m.Ask | m.Close):
        return None
    if plan is None or isinstance(body, m.Close):
        return BASE_SECONDS
    # A record with several labels, or sections, stands under each of them, in whatever the plan asks.
    records *= plan.labels_per_record
    if isinstance(body, m.Open):
        work = _ROUND * plan.total_queries if plan.secure else 0
    else:
        work = operations(body.query, records) + _noise(body.query, plan, plan.query(index))
    return BASE_SECONDS + OPERATION_SECONDS * (_RECORD * records + work)


def _noise(query: Query, plan: Plan, planned: PlannedQuery) -> int:
    """Count the operations for an answer's numbers, their noise, and the table that the noise is drawn from."""
    if isinstance(query, Texts):
        return 0
    if planned.mechanism == "laplace":  # a plan has none that needs no table
        return _NUMBER * (query.length + math.ceil(LAPLACE_REACH * planned.scale))
    if planned.mechanism == "gaussian":
        sigma = plan.share_sigma(planned)
        slow = sigma > LARGEST_TABLE
        return _SLOW_NUMBER * query.length if slow else _NUMBER * (query.length + math.ceil(2 * REACH * sigma))
    coins = tosses(query, planned.scale) if isinstance(query, SeedChoice) else 0
    return _NUMBER * query.length + _TOSS * coins


def tosses(query: SeedChoice, scale: float) -> int:
    """Return the number of coins tossed for all choices, which is exceeded only with probability below exp(-20).

    A candidate is drawn and taken with probability p_c = exp((u_c - max u) / scale), and if it is not taken, the next
    one is drawn (`common.privacy.mechanisms.noisy_max`). How many coins that takes depends on the records, through u.
    Utilities are in [0, 1], so that p_c >= exp(-1 / scale), and at least n of the K candidates have p_c = 1: `nearest`,
    or one. So a drawn candidate is taken with probability at least 1 / m, where m = K / (n + (K - n) exp(-1 / scale)),
    which is at most min(K, exp(1 / scale)). In the worst case, all candidates but n have utility 0, and it is 1 / m.

    With replacement the coins of a choice are independent, so that their number is at most geometric with mean m. That
    of N choices exceeds x m N with probability at most exp(-N (x - 1 - ln x)) (Janson 2018, "Tail bounds for sums of
    geometric and exponential variables", theorem 2.1), which is at most exp(-t) for x = 1 + sqrt(2 t / N) + t / N.

    Without replacement (permute-and-flip) the first j candidates are all rejected with probability e_j(q) / C(K, j),
    where q_c = 1 - p_c and e_j is the elementary symmetric polynomial. By Maclaurin's inequality this is at most
    (mean of q)^j, the probability with replacement. So the same bound holds.

    The scale of the noise is in utilities; it is 0 if there is none.
    """
    candidates, choices = len(query.vectors), query.spec.choices
    best = min(max(query.spec.nearest, 1), candidates)
    others = (candidates - best) * (math.exp(-1 / scale) if scale else 0.0)
    most = candidates / (best + others)
    return math.ceil(most * (choices + math.sqrt(2 * _UNLIKELY * choices) + _UNLIKELY))


@singledispatch
def operations(query: Query, records: int) -> int:
    """Return an approximate bound on the number of multiplications needed for an answer.

    Args:
        query: The query; only the shapes of its arrays matter.
        records: The maximum number of records of a party.
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
def _(query: Questionnaire, records: int) -> int:
    asked = _TEXT * len(query.spec.questions) * records
    listed = _vocabulary(query.terms, records) if query.spec.first else 0
    return operations.dispatch(ClassSums)(query, records) + asked + listed


@operations.register
def _(query: CorrectCount, records: int) -> int:
    classes, dimensions = query.weights.shape
    return int(classes * (records * (dimensions + _PAIR) + _READ * dimensions))


@operations.register
def _(query: SeedChoice, records: int) -> int:
    del records  # the plan gives the number that choose
    texts, dimensions = query.vectors.shape
    each = texts * (dimensions + 8 * _PAIR) + _CHOICE
    return int(query.spec.choices * each + texts * _READ * dimensions)


@operations.register
def _(query: Sketch, records: int) -> int:
    terms, rows, columns = len(query.vectors), *query.frequencies.shape
    products = min(terms, records * query.spec.first) * rows * (columns + _PAIR)
    means = records * rows * query.spec.first * _PAIR
    read = query.vectors.size + query.frequencies.size
    return _vocabulary(query.terms, records) + int(products + means) + _READ * read


@operations.register
def _(query: Vocabulary, records: int) -> int:
    return _vocabulary(query.terms, records)


def _vocabulary(terms: NDArray[np.uint8], records: int) -> int:
    listed = decode_terms(terms)
    longest = max(sum(1 for _ in words(term)) for term in listed)
    # At each word of a text this number of terms is looked up.
    text = _CHARACTER * READ_CHARACTERS + _WORD * READ_WORDS * (1 + longest) // 2
    return _TERM * len(listed) + _BYTE * len(terms) + text * records


@operations.register
def _(query: SelfSimilarity, records: int) -> int:
    del query
    return records * _PAIR * _WIDTH


@operations.register
def _(query: LengthHistogram, records: int) -> int:
    del query
    return _TEXT * records


@operations.register
def _(query: LengthRange, records: int) -> int:
    return _TEXT * records + _STEP * query.spec.cap


@operations.register
def _(query: SectionOrder, records: int) -> int:
    del query
    return _PAIR * records


@operations.register
def _(query: LabelSets, records: int) -> int:
    return _PAIR * query.spec.labels_per_record * records


@operations.register
def _(query: LabelHistogram | Texts, records: int) -> int:
    del query, records
    return 0
