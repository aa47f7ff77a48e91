"""A value that can be taken out once: what makes a protocol state impossible to use twice."""

from typing import Generic, NoReturn, TypeVar

from common.errors import ProtocolError

Held = TypeVar("Held")


class Once(Generic[Held]):
    """Holds what one protocol state knows, until its transition takes it.

    Taking is atomic, so of two threads that race one loses; it also drops the secrets from the spent state. It can be
    neither copied nor pickled: a second copy of a state would be a second use of its masks. There is no repr.
    """

    __slots__ = ("_box", "_step")

    def __init__(self, held: Held, *, step: str) -> None:
        self._box = [held]
        self._step = step

    def take(self) -> Held:
        """What is held; afterwards nothing is.

        Raises:
            ProtocolError: If it was taken before.
        """
        try:
            return self._box.pop()
        except IndexError:
            raise self._spent() from None

    def get(self) -> Held:
        """What is held, left in place.

        Raises:
            ProtocolError: If it was taken before.
        """
        try:
            return self._box[0]
        except IndexError:
            raise self._spent() from None

    def __reduce__(self) -> NoReturn:
        raise TypeError("a protocol state cannot be copied or stored: after a restart the party counts as dropped out")

    def _spent(self) -> ProtocolError:
        return ProtocolError(
            "a step of secure aggregation was asked for twice",
            expected="one use",
            got="a spent state",
            where=self._step,
            do="Start a new attempt with fresh entropy",
        )
