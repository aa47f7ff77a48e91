"""CPU times, and the figures of a benchmark: each relative to another one of the same run, so machines are comparable.

A benchmark's `main` prints its own table and returns its ratios. `benchmark(main)` is its entry point; if the last
arguments are `--ratios FILE`, it writes the ratios there for `python -m simulations.laboratory.benchmarks`.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

OPTION = "--ratios"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """One figure of a benchmark: a quantity divided by another quantity.

    Attributes:
        name: Name of the measured quantity.
        to: Name of the quantity that it is divided by.
        value: The ratio; lower is better.
        goal: Largest acceptable value; None if there is no goal.
    """

    name: str
    to: str
    value: float
    goal: float | None = None

    def __str__(self) -> str:
        """Return the ratio as one line of text, with the goal and whether it was reached."""
        verdict = "" if self.goal is None else f"{'hit' if self.value <= self.goal else 'MISSED'} of {self.goal:g}"
        return f"{self.value:8.3f} {verdict:16} {self.name}, to {self.to}"


def benchmark(main: Callable[[Sequence[str]], Sequence[Ratio]]) -> None:
    """Run a benchmark with the arguments of the command line; write its ratios to FILE if `--ratios FILE` is given."""
    arguments, file = sys.argv[1:], None
    if OPTION in arguments[-2:-1]:
        arguments, file = arguments[:-2], arguments[-1]
    ratios = main(arguments)
    if file is not None:
        Path(file).write_text(json.dumps([asdict(ratio) for ratio in ratios]), encoding="utf-8")


def time_action(
    action: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
) -> tuple[Result, float]:
    """Return the result of `action`, and the CPU time that this process spent on it, in milliseconds."""
    start = time.process_time()
    result = action(*arguments, **named)
    return result, 1000 * (time.process_time() - start)
