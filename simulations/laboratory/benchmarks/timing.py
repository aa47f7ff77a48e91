"""CPU time of function calls."""

import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def timed(
    action: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
) -> tuple[Result, float]:
    """Return the result of `action`, and the CPU time that this process spent on it, in milliseconds."""
    start = time.process_time()
    result = action(*arguments, **named)
    return result, 1000 * (time.process_time() - start)


def fastest(times: int, action: Callable[[], object]) -> float:
    """Return the CPU time, in milliseconds, of the fastest of `times` calls; other processes can only add to it."""
    return min(timed(action)[1] for _ in range(times))
