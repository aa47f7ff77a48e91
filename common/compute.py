"""Computation of values that are the same at every party, since they depend only on data sent to all of them.

These data are the plan, all keys and a question. A hospital always computes each value itself (`directly`). In a
simulation hundreds of parties in one process would all compute the same values, so they share them through a
`simulations.federation.shared.Shared`.
"""

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Compute(Protocol):
    """Computes `function(*arguments, **named)`, or returns a value that was computed before for equal arguments.

    The function must therefore be pure, with the same result for equal arguments, and callers must not modify the
    result. Exceptions of the function are passed on.
    """

    def __call__(
        self, function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """Return the value of the function."""


def directly(function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
    """Compute the value by calling the function."""
    return function(*arguments, **named)
