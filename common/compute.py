"""Computation by a party of values that depend only on what all are sent: the plan, all keys, a question.

A hospital computes each value itself (`directly`), and has no other way. Hundreds of simulated parties in one process
would all compute the same ones: they are given a `simulations.federation.shared.Shared`.
"""

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Compute(Protocol):
    """Returns `function(*arguments, **named)`, or raises what it raises.

    The function must be pure, its arguments must be equal only where it cannot distinguish them, and nobody may change
    its result.
    """

    def __call__(
        self, function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """The value of the function."""


def directly(function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
    """Compute the value here and now."""
    return function(*arguments, **named)
