"""Values that can be taken only once, so that no protocol state can be used twice."""

from collections.abc import Mapping
from typing import Generic, NoReturn, TypeVar

from common.errors import ProtocolError, ReplayError

Value = TypeVar("Value")


class Once(Generic[Value]):
    """Holds the value of one protocol state until its transition takes it.

    Taking is atomic, so only one of two racing threads succeeds; it also drops the secrets from the spent state. The
    object can be neither copied nor pickled: a second copy of a state would be a second use of its masks. There is no
    repr.
    """

    __slots__ = ("_box", "_step")

    def __init__(self, value: Value, *, step: str) -> None:
        self._box = [value]
        self._step = step

    def take(self) -> Value:
        """Remove the value and return it.

        Raises:
            ReplayError: If the value was taken before.
        """
        try:
            return self._box.pop()
        except IndexError:
            raise _spent(self._step) from None

    def get(self) -> Value:
        """Return the value without removing it.

        Raises:
            ReplayError: If the value was taken before.
        """
        try:
            return self._box[0]
        except IndexError:
            raise _spent(self._step) from None

    def __reduce__(self) -> NoReturn:
        raise _no_copy()


class OnceEach(Generic[Value]):
    """Holds one value for each round. Taking the value of a round also drops the values of all earlier rounds.

    In all other respects it behaves like `Once`.
    """

    __slots__ = ("_rounds", "_step", "_values")

    def __init__(self, values: Mapping[int, Value], *, step: str) -> None:
        self._values = dict(values)
        self._rounds = frozenset(values)
        self._step = step

    def take(self, index: int) -> Value:
        """Remove the values of this round and all earlier rounds; return the value of this round.

        Raises:
            ReplayError: If this value, or the value of a later round, was taken before.
            ProtocolError: If there is no such round.
        """
        where = f"round {index}, {self._step}"
        if index not in self._rounds:
            raise ProtocolError("round", expected=f"one of {sorted(self._rounds)}", got=index, where=self._step)
        try:
            value = self._values.pop(index)
        except KeyError:
            raise _spent(where) from None
        for earlier in [number for number in list(self._values) if number < index]:
            self._values.pop(earlier, None)
        return value

    def __reduce__(self) -> NoReturn:
        raise _no_copy()


def _spent(where: str) -> ReplayError:
    return ReplayError(
        "a step of secure aggregation was asked for twice",
        expected="one use",
        got="a spent state",
        where=where,
        do="Set up again with fresh entropy",
    )


def _no_copy() -> TypeError:
    return TypeError("a protocol state cannot be copied or stored: after a restart the party counts as dropped out")
