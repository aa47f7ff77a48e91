"""The rate at which SuperNode polls the coordinator for a message, and the relay polls SuperNode.

A run's next message usually comes soon after the last one. So each wait is a fraction of the time since the last
message. Waiting lengthens a phase by at most that fraction, whether the phase takes a second or a minute, and a node
without a run rarely polls the coordinator.
"""

import time


class Pace:
    """The wait before the next poll for a message.

    Args:
        shortest: Shortest wait in seconds, right after a message.
        longest: Longest wait in seconds, when no run is in progress.
        share: Length of a wait as a fraction of the time since the last message.
    """

    def __init__(self, shortest: float, longest: float, share: float) -> None:
        self._shortest, self._longest, self._share = shortest, longest, share
        self._last = float("-inf")

    def came(self, now: float | None = None) -> None:
        """Record that a message has just come; `now` is in seconds of the monotonic clock."""
        self._last = time.monotonic() if now is None else now

    def seconds(self, now: float | None = None) -> float:
        """Return the wait, in seconds, before the next poll."""
        since = (time.monotonic() if now is None else now) - self._last
        return min(self._longest, max(self._shortest, self._share * since))
