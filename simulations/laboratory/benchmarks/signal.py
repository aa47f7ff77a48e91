"""Signal-to-noise ratio of votes and class sums, by number of records and epsilon: the picture in CENSUS.md.

    python -m simulations.laboratory.benchmarks.signal

Nothing is run or measured: each figure is the ratio that `caucus-coordinator plan` expects for one coordinate of an
answer, with the calibrated noise of a whole plan. Each mark on a line is at the position of its ratio on a logarithmic
scale.
"""

import argparse
import math
import sys
from collections.abc import Mapping, Sequence

from server.domain import Task
from server.planning.signal import CLEAR, HOPELESS, Signal, signals, weakest
from server.settings.build import drafted
from server.settings.compose import composed

RECORDS = (100, 300, 1000)
EPSILONS = (1, 4)
ANSWERS: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "V": (10, ("method=wasp", "method.samples=6000", "method.rounds=5")),
    "v": (10, ("method=wasp", "method.samples=300", "method.rounds=2")),
    "c": (77, ("method=census",)),
    "C": (10, ("method=census",)),
}
"""Number of labels, and settings, for each kind of answer, keyed by the letter that marks it in the picture."""

_TICKS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
_DECADE = 10
"""Width, in characters, of a factor of ten in the picture."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the picture."""
    argparse.ArgumentParser(prog="signal", description=__doc__.split("\n", 1)[0]).parse_args(arguments)
    by_epsilon = {
        epsilon: {mark: estimates(epsilon, *answer) for mark, answer in ANSWERS.items()} for epsilon in EPSILONS
    }
    scale = "".join(f"{tick:<{_DECADE}g}" for tick in _TICKS[:-1])
    heads = "".join(f"{mark:>8}" for mark in ANSWERS)
    sys.stdout.write(f"{'M':>5} {'epsilon':>8}  {scale}{heads}\n")
    for records in RECORDS:
        for epsilon in EPSILONS:
            ratios = {mark: of[records].ratio for mark, of in by_epsilon[epsilon].items()}
            figures = "".join(f"{ratio:8.3g}" for ratio in ratios.values())
            sys.stdout.write(f"{records:5} {epsilon:8}  {drawn(ratios)}{figures}\n")


def estimates(epsilon: float, labels: int, settings: Sequence[str]) -> dict[int, Signal]:
    """Return the expected signal of a plan's weakest answer, keyed by number of records, without missing signals."""
    task = Task(name="any", kind="text", labels={f"label {number}": "" for number in range(labels)})
    plan, compared = drafted(composed([*settings, "federation.parties=10", f"privacy.epsilon={epsilon}"]), task)
    by_records = {records: weakest(signals(plan, compared, records)) for records in RECORDS}
    return {records: signal for records, signal in by_records.items() if signal is not None}


def drawn(ratios: Mapping[str, float]) -> str:
    """Return a line of text with each mark at the position of its ratio, on a logarithmic scale.

    Dots end at the ratio at which an answer is no longer noise, and dashes at the ratio at which it is clear.
    """
    width = _DECADE * (len(_TICKS) - 1)
    line = ["." if at < _place(HOPELESS) else "-" if at < _place(CLEAR) else " " for at in range(width)]
    for mark, ratio in ratios.items():
        line[min(width - 1, max(0, _place(ratio)))] = mark
    return "".join(line)


def _place(ratio: float) -> int:
    return math.floor(_DECADE * math.log10(ratio / _TICKS[0]))


if __name__ == "__main__":
    main()
