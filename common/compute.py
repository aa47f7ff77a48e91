"""Computation of values that are the same at every party, since they depend only on data sent to all of them.

These data are the plan, all keys and a question. A hospital always computes each value itself (`directly`). In a
simulation, hundreds of parties in one process would all compute the same values, so each value is computed once and
shared through a `simulations.federation.parties.LastValues`.
"""

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Compute(Protocol):
    """Computes `function(*arguments, **named)`, or returns the value computed earlier for equal arguments.

    The function must therefore be pure, with the same result for equal arguments, and callers must not modify the
    result. Exceptions raised by the function are propagated.
    """

    def __call__(
        self, function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """Return the function's result for these arguments."""


def directly(function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
    """Call the function and return its result."""
    return function(*arguments, **named)
