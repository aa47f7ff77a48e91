"""Computation of values that are the same at every party, since they depend only on data sent to all of them.

These data are the plan, all keys and a question. A hospital always computes each value itself (`directly`). Hundreds of
simulated parties in one process would all compute the same ones: they are given a
`simulations.federation.shared.Shared`.
"""

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Compute(Protocol):
    """Computes `function(*arguments, **named)`; it raises what the function raises.

    The function must be pure, its arguments must be equal only where it cannot distinguish them, and nobody may change
    its result.
    """

    def __call__(
        self, function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """Return the value of the function."""


def directly(function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
    """Compute the value by calling the function."""
    return function(*arguments, **named)
