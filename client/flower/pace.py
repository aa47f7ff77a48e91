"""Pace at which SuperNode asks the coordinator for a message, and the relay asks SuperNode.

A run's next message mostly comes soon after the last one, and seldom a long while later. So each wait is a fraction of
the time since the last message: it lengthens a phase by that fraction at most, whether phases take a second or a
minute, and a node without a run seldom asks the coordinator.
"""

import time


class Pace:
    """Duration of the wait before asking for a message again.

    Args:
        shortest: Shortest wait in seconds, right after a message.
        longest: Longest wait in seconds, when no run is going on.
        share: Length of a wait as a fraction of the time since the last message.
    """

    def __init__(self, shortest: float, longest: float, share: float) -> None:
        self._shortest, self._longest, self._share = shortest, longest, share
        self._last = float("-inf")

    def came(self, now: float | None = None) -> None:
        """Record that a message came now; times are in seconds of the monotonic clock."""
        self._last = time.monotonic() if now is None else now

    def seconds(self, now: float | None = None) -> float:
        """Return the wait, in seconds, before asking again."""
        since = (time.monotonic() if now is None else now) - self._last
        return min(self._longest, max(self._shortest, self._share * since))
