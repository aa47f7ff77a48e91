"""Findings: figures for each claim's rows, paired differences, and a verdict.

A difference is between two runs with the same data set and experiment seed; its interval is Student's t over all such
pairs. One such interval in twenty misses the truth by chance, and the full preset has more than a hundred intervals: at
each epsilon, one in forty claims of a difference that is none "holds" and one in forty is "refuted". The page marks the
verdicts that do not stand after a correction for this (`correction.py`).
"""

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from server.metrics.intervals import Interval
from simulations.laboratory.results import computed
from simulations.laboratory.results.cells import Preset
from simulations.laboratory.results.claims import (
    DOES_NOT_SHOW,
    HIGHER,
    HOLDS,
    LOWER,
    NOT_RUN,
    REFUTED,
    WITHIN,
    WITHOUT_PRIVACY,
    Claim,
)
from simulations.laboratory.results.runs import RunMeasurements
from simulations.sweeps.table import paired_differences


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFigure:
    """A row's figure at one epsilon.

    Attributes:
        row: Name of the row.
        epsilon: Epsilon; None if the rows set their own.
        mean: Mean over the runs; None if there are no runs.
        deviation: Sample standard deviation over the runs; None for fewer than two.
        planned: Number of runs that the preset requires.
    """

    row: str
    epsilon: float | None
    mean: float | None
    deviation: float | None
    planned: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The difference between the favoured row and the other row, at one epsilon.

    Attributes:
        epsilon: Epsilon; None if the rows set their own.
        mean: Mean of the paired differences, favoured row minus other row.
        interval: The difference's 95% interval; None for a single pair; of width 0 for a computed figure.
        pairs: Number of pairs; 0 for a computed figure.
    """

    epsilon: float | None
    mean: float
    interval: Interval | None
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Verdict on a claim, and the figures behind it.

    Attributes:
        claim: The claim.
        data: Data sets on which it was measured; empty for computed figures.
        figures: Figures of each row at each epsilon.
        differences: Difference between the favoured row and the other row, at each epsilon.
        verdict: One of `claims.VERDICTS`, or `NOT_RUN`.
        from_epsilon: Epsilon from which on the claim holds; None if it holds at each epsilon or at none.
        failures: Reasons why runs failed.
    """

    claim: Claim
    data: tuple[str, ...]
    figures: tuple[RowFigure, ...]
    differences: tuple[Difference, ...]
    verdict: str
    from_epsilon: float | None = None
    failures: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The verdict, with the epsilon from which on the claim holds."""
        return self.verdict + ("" if self.from_epsilon is None else f" from ε = {self.from_epsilon:g}")


def finding(chosen: Preset, claim: Claim, results: Mapping[str, RunMeasurements]) -> Finding:
    """Return the finding on a claim, from the available results."""
    if claim.computed is not None:
        return _computed(claim)
    cells = chosen.cells(claim)
    by_pair: dict[tuple[str, float | None], dict[tuple[str, int], float]] = {}
    failures = []
    for place, needed in cells.items():
        known = [(cell, results.get(chosen.key(cell))) for cell in needed]
        failures += [
            one.error or f"claims.{claim.name}.figure; expected a figure of its runs; got {claim.figure}"
            for _, one in known
            if one is not None and (one.error is not None or claim.figure not in one.figures)
        ]
        by_pair[place] = {
            (cell.data, cell.seed): one.figures[claim.figure]
            for cell, one in known
            if one is not None and claim.figure in one.figures
        }
    figures = tuple(
        RowFigure(
            row=row,
            epsilon=epsilon,
            mean=statistics.fmean(values.values()) if values else None,
            deviation=statistics.stdev(values.values()) if len(values) > 1 else None,
            planned=len(cells[row, epsilon]),
        )
        for (row, epsilon), values in by_pair.items()
    )
    favoured, other = claim.compare
    differences = tuple(
        difference
        for epsilon in claim.epsilons or (None,)
        if (difference := _difference(epsilon, by_pair[favoured, epsilon], by_pair[other, epsilon])) is not None
    )
    ended = all(chosen.key(cell) in results for needed in cells.values() for cell in needed)
    reached, from_epsilon = verdict(claim, differences) if ended else (NOT_RUN, None)
    if ended and any(len(by_pair[place]) < len(cells[place]) for place in cells if place[0] in claim.compare):
        # A failure may be an outcome too, and then the pairs that are left are a choice.
        reached, from_epsilon = DOES_NOT_SHOW, None
    return Finding(
        claim=claim,
        data=tuple(chosen.data_sets(claim)),
        figures=figures,
        differences=differences,
        verdict=reached,
        from_epsilon=from_epsilon,
        failures=tuple(dict.fromkeys(failures)),
    )


def verdict(claim: Claim, differences: Sequence[Difference]) -> tuple[str, float | None]:
    """Return the verdict on a claim, from the differences at each epsilon.

    Returns:
        One of `VERDICTS` or `NOT_RUN`, and the epsilon from which on the claim holds, or None if it holds at each
        epsilon or at none.
    """
    known = [difference for difference in differences if difference.interval is not None]
    private = [difference for difference in known if difference.epsilon is None or math.isfinite(difference.epsilon)]
    without = [difference for difference in known if difference not in private]
    if not known:
        return NOT_RUN, None
    largest_first = sorted(private, key=lambda one: one.epsilon or 0, reverse=True)
    holding = list(itertools.takewhile(lambda one: _holds(claim, one.interval), largest_first))
    if holding:
        return HOLDS, holding[-1].epsilon if len(holding) < len(private) else None
    if without and all(_holds(claim, one.interval) for one in without):
        if claim.epsilons and all(map(math.isinf, claim.epsilons)):
            return HOLDS, None
        return (WITHOUT_PRIVACY, None) if private else (NOT_RUN, None)
    if any(_refuted(claim, one.interval) for one in private or without):
        return REFUTED, None
    return DOES_NOT_SHOW, None


def _holds(claim: Claim, interval: Interval | None) -> bool:
    assert interval is not None
    low, high = interval
    return {HIGHER: low > 0, LOWER: high < 0, WITHIN: -claim.margin <= low and high <= claim.margin}[claim.expects]


def _refuted(claim: Claim, interval: Interval | None) -> bool:
    assert interval is not None
    low, high = interval
    return {HIGHER: high < 0, LOWER: low > 0, WITHIN: low > claim.margin or high < -claim.margin}[claim.expects]


def worst_figure(claim: Claim) -> str:
    """Return the name of the figure of the label with the lowest accuracy; that of the claim's own if there is none."""
    return claim.figure.replace(".accuracy", ".worst_label")


def _difference(
    epsilon: float | None, mine: Mapping[tuple[str, int], float], theirs: Mapping[tuple[str, int], float]
) -> Difference | None:
    pairs = paired_differences(mine, theirs)
    if not pairs.differences:
        return None
    return Difference(epsilon=epsilon, mean=pairs.mean, interval=pairs.interval, pairs=len(pairs.differences))


def _computed(claim: Claim) -> Finding:
    assert claim.computed is not None
    values = computed.FUNCTIONS[claim.computed]()
    gap = values[claim.compare[0]] - values[claim.compare[1]]
    difference = Difference(epsilon=None, mean=gap, interval=(gap, gap), pairs=0)
    reached, _ = verdict(claim, (difference,))
    figures = tuple(
        RowFigure(row=row, epsilon=None, mean=value, deviation=None, planned=1) for row, value in values.items()
    )
    return Finding(claim=claim, data=(), figures=figures, differences=(difference,), verdict=reached)
