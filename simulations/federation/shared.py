"""Values that are the same for all parties of one process and are computed once for all of them."""

from collections.abc import Callable
from typing import Any

from common.compute import Arguments, Compute, Result


class LastValues(Compute):
    """A cache of each function's last value, for all parties that need the same value.

    A party gets a value that another party computed only if all arguments are equal, down to the last byte, so the
    result of a check is never used for other values. A function that raised an error is called again. The parties get
    one question after another, so one value per function is enough. Threads that need a value at the same time may each
    compute it.
    """

    def __init__(self) -> None:
        self._last: dict[Callable[..., Any], tuple[object, Any]] = {}

    def __call__(
        self, function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """Return the function's value for these arguments; compute it unless the last call had equal arguments."""
        computed_for, value = self._last.get(function, (None, None))
        if computed_for != (arguments, named):
            value = function(*arguments, **named)
            self._last[function] = (arguments, named), value
        return value  # type: ignore[no-any-return]
