"""Expected signal and noise of a plan's answers, in numbers and words, before any query is asked.

A plan is also solved backwards: for the least epsilon, or number of records, at which every answer reaches a given
signal. The noise of a calibrated plan depends only on epsilon, and decreases as epsilon grows; the signal depends only
on the number of records.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from scipy.special import ndtr

from common.errors import PlanError
from common.phrases import series
from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.queries.histograms import VocabularySpec
from common.queries.questionnaire import QuestionnaireSpec
from common.queries.seed_choice import SeedChoiceSpec
from common.queries.votes import VotesSpec
from server.planning.expected import TERMS, Expected, Setting, expected_signal
from server.settings.voting import RANKING, USUAL_VOTES

HOPELESS = 0.5
"""Signal-to-noise ratio below which an answer counts as noise: with probability above Phi(-0.5 / sqrt(2)) = 0.36, a
candidate with the expected votes is ranked below a candidate without votes. Candidates that differ by less are
misranked even more often."""
CLEAR = 3.0
"""Signal-to-noise ratio from which an answer counts as clear: one in 60 such pairs of candidates is misranked (Phi(-3 /
sqrt(2)) = 0.017)."""

FEWER_CANDIDATES = "fewer candidates (method.samples)"
"""Step that helps where votes are noise."""

_STEP = 1.1
"""Ratio between successive numbers of records tried. If a signal falls with more records, its peak is wider than this
ratio."""
_LARGEST = 2000
"""Largest epsilon that is searched, in hundredths. Above 20 the guarantee is meaningless: e^20 is half a billion."""
_POSSIBLE = 100
"""An epsilon, in hundredths, below which a plan may need more noise than it can have, and above which less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """The expected signal of one planned query.

    Attributes:
        query: Name of the query, followed by the name of the part if the signal is that of part of a questionnaire.
        kind: The query's kind.
        expected: Signal and noise; None if there is no estimate.
        records: M, the expected number of records; None if it is unknown.
        reason: Why there is no estimate; empty if there is one.
        clear_from: Smallest number of records for which the ratio is at least `CLEAR`; None if no number is enough.
    """

    query: str
    kind: str
    expected: Expected | None
    records: int | None
    reason: str = ""
    clear_from: int | None = None

    @property
    def ratio(self) -> float:
        """Signal-to-noise ratio; infinite if there is no noise, NaN if there is no estimate."""
        if self.expected is None:
            return math.nan
        return self.expected.signal / self.expected.noise if self.expected.noise else math.inf

    def to_dict(self) -> dict[str, object]:
        """Return the estimate in the form for JSON."""
        if self.expected is None:
            return {"not_estimated": self.reason, "clear_from_records": self.clear_from}
        return {
            **self.expected._asdict(),
            "ratio": self.ratio,
            # The comparison is of a candidate with the expected votes and one without any.
            "ranked_rightly": float(ndtr(self.ratio / math.sqrt(2))),
            "clear_from_records": self.clear_from,
        }


def signals(plan: Plan, compared: Mapping[str, int], records: int | None) -> list[Signal]:
    """Return the expected signal of each query of a calibrated plan, in the plan's order.

    Args:
        plan: The plan with its noise.
        compared: Number of candidates or similar items, keyed by query (`Method.compared`).
        records: M, the expected number of records; if None, only `clear_from` is computed.
    """
    return [_signal(plan, planned, compared.get(planned.name, 0), records) for planned in plan.queries]


def with_weakest_parts(plan: Plan, compared: Mapping[str, int], records: int | None) -> list[Signal]:
    """Return `signals`, with each questionnaire's signal followed by that of the part that needs the most records."""
    estimates = []
    for whole, *parts in _with_parts(plan, compared, records):
        weak = max(parts, key=lambda part: (part.clear_from or math.inf, -part.ratio), default=None)
        estimates += [whole, weak] if weak else [whole]
    return estimates


def with_parts(plan: Plan, compared: Mapping[str, int], records: int | None) -> list[Signal]:
    """Return `signals`, with each questionnaire's signal followed by those of all its parts."""
    return [signal for estimates in _with_parts(plan, compared, records) for signal in estimates]


def _with_parts(plan: Plan, compared: Mapping[str, int], records: int | None) -> Iterator[list[Signal]]:
    for planned in plan.queries:
        parts = ("", *parts_of(planned))
        yield [_signal(plan, planned, compared.get(planned.name, 0), records, part) for part in parts]


def parts_of(planned: PlannedQuery) -> list[str]:
    """Return the names of the questions of a questionnaire, and of its terms; empty for any other query."""
    spec = planned.spec
    if not isinstance(spec, QuestionnaireSpec):
        return []
    return [*(question.name for question in spec.questions), *([TERMS] if spec.first else [])]


def weakest(estimates: Sequence[Signal]) -> Signal:
    """Return the estimate with the lowest signal-to-noise ratio.

    Raises:
        PlanError: No query has an estimate.
    """
    estimated = [signal for signal in estimates if signal.expected]
    if not estimated:
        raise PlanError("no query of this plan has a signal that can be estimated", do="Plan without --signal")
    return min(estimated, key=lambda signal: signal.ratio)


def records_for(ratio: float, plan: Plan, planned: PlannedQuery, compared: int, part: str = "") -> int | None:
    """Return the least number of records with a signal of `ratio` times the noise; None if no number is enough."""

    def enough(records: int) -> bool:
        estimate = _expected(plan, planned, compared, records, part)
        return not isinstance(estimate, str) and estimate.signal >= ratio * estimate.noise

    low, high, most = 0, 1, plan.parties * plan.max_records_per_party
    while not enough(high):
        if high == most:
            return None
        low, high = high, min(max(high + 1, round(_STEP * high)), most)
    return bisect_left(range(high), True, lo=low + 1, key=enough)


def least_epsilon(ratio: Callable[[float], float], target: float) -> float:
    """Return the smallest epsilon, a multiple of 0.01, at which the weakest signal is `target` times its noise.

    Args:
        ratio: Signal-to-noise ratio of the weakest answer as a function of epsilon; it increases with epsilon.
        target: Signal-to-noise ratio to reach, above 0.

    Raises:
        PlanError: The signal would need an epsilon above 20.
    """

    def enough(hundredths: int) -> bool:
        try:
            return ratio(hundredths / 100) >= target
        except PlanError:
            return hundredths >= _POSSIBLE

    epsilon = bisect_left(range(_LARGEST), True, lo=1, key=enough) / 100
    reached = ratio(epsilon)
    if reached < target:
        raise PlanError(
            "signal",
            expected=f"{target:g} times the noise at an epsilon of at most {_LARGEST / 100:g}",
            got=f"{reached:.2g}",
            do="Expect more records, or plan fewer candidates, labels or answers",
        )
    return epsilon


def least_records(plan: Plan, compared: Mapping[str, int], target: float) -> int:
    """Return the smallest number of records at which the weakest answer's signal is `target` times its noise.

    The parts of a questionnaire count as answers of their own.

    Args:
        plan: The plan with its noise.
        compared: Number of candidates or similar items, keyed by query.
        target: Signal-to-noise ratio to reach, above 0.

    Raises:
        PlanError: No number of records is enough, or no query's signal can be estimated.
    """
    estimated = {signal.query for signal in with_parts(plan, compared, 1) if signal.expected}
    needed = {
        name: records_for(target, plan, planned, compared.get(planned.name, 0), part)
        for planned in plan.queries
        for part in ("", *parts_of(planned))
        if (name := f"{planned.name}, {part}" if part else planned.name) in estimated
    }
    least = max((records for records in needed.values() if records), default=1)
    decisive = weakest(with_parts(plan, compared, least))
    if decisive.ratio < target:
        falls = needed[decisive.query] is not None
        raise PlanError(
            "signal",
            expected=f"{target:g} times the noise with some number of records",
            got=f"less for {decisive.query}, {f'with the {least:,} that others take' if falls else 'with any number'}",
            do=f"Choose {'more buckets' if falls else 'a larger privacy.epsilon'}",
        )
    return least


def _signal(plan: Plan, planned: PlannedQuery, compared: int, records: int | None, part: str = "") -> Signal:
    estimate = _expected(plan, planned, compared, 1 if records is None else records, part)
    if records is None and isinstance(estimate, Expected):
        estimate = "no number of records is expected"
    return Signal(
        query=f"{planned.name}, {part}" if part else planned.name,
        kind=planned.spec.kind,
        expected=estimate if isinstance(estimate, Expected) else None,
        records=records,
        reason=estimate if isinstance(estimate, str) else "",
        clear_from=records_for(CLEAR, plan, planned, compared, part),
    )


def _expected(plan: Plan, planned: PlannedQuery, compared: int, records: float, part: str = "") -> Expected | str:
    if isinstance(planned.spec, (VotesSpec, VocabularySpec, SeedChoiceSpec)) and not compared:
        return "the method does not say among how many the records choose"
    setting = Setting(planned=planned, plan=plan, compared=compared, records=records * planned.rate, part=part)
    return expected_signal(planned.spec, setting)


def hopeless(estimates: Sequence[Signal]) -> dict[str, str]:
    """Return a sentence about each query for which the answers will be mere noise, keyed by the query's name."""
    return {signal.query: _sentence(signal) for signal in estimates if signal.ratio < HOPELESS}


def signal_advice(estimates: Sequence[Signal]) -> list[str]:
    """Return a sentence on each query whose answers will be noise or weak, or whose signal cannot be estimated."""
    return [_sentence(signal) for signal in estimates if not signal.ratio >= CLEAR]


def few_candidates(plan: Plan, compared: Mapping[str, int]) -> list[str]:
    """Return a sentence on each query in which records rank too few candidates of a label to choose from.

    `compared` has the number of candidates, keyed by query (`Method.compared`).
    """
    sentences = []
    for planned in plan.queries:
        spec, candidates = planned.spec, compared.get(planned.name, 0) // len(plan.labels)
        if not isinstance(spec, VotesSpec) or (spec.top == 1 and not spec.furthest):
            continue
        enough = 2 * max(spec.top, USUAL_VOTES)
        if candidates < enough:
            half = max(1, candidates // 2)
            lower = f", or set method.top={half}" * (spec.top > half)
            sentences.append(
                f"{planned.name} will choose among at most {candidates} candidates of each label, which is too few: "
                f"write more texts (method.samples), so that a label has {enough} or more{lower}. Votes still differ: "
                f"{RANKING}, for Q = {spec.top} candidates (method.top)"
            )
    return sentences


def _sentence(signal: Signal) -> str:
    clear = f"{signal.clear_from:,} for {CLEAR:g} times the noise" if signal.clear_from else ""
    if signal.expected is None:
        return f"{signal.query}: not estimated: {signal.reason}{clear and f'; it takes {clear}'}"
    expected, noise, unit = signal.expected
    what = "noise" if signal.ratio < HOPELESS else "weak"
    takes = [*([f"more records ({clear})"] if clear else []), "a larger privacy.epsilon"]
    if signal.kind == VotesSpec.kind:
        takes += [FEWER_CANDIDATES, "method=class_sums"]
    return (
        f"{signal.query} will be {what}: {expected:.2g} {unit} against {noise:.2g} of noise if there are "
        f"{signal.records:,} records; it takes {series(takes, 'or')}"
    )
