"""The duration of a run over real nodes as a sum of named terms, used to plan a run.

    Cost(wait=0, trips=2, bytes=31_000, work=0.36, start=10).run(phases(queries=4), nodes=50, delay=0.1, rate=1.25e6)

`make bench-nodes` measures the terms on this machine, and prints this sum next to the duration of delayed runs.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The terms from which the duration of a run is computed.

    Attributes:
        wait: Duration of a phase on a line without a delay, in seconds: the waits between two polls for a message, and
            the work of a hospital.
        trips: Number of consecutive round trips in a phase.
        bytes: Bytes that a node sends or receives in a phase, in the busier direction of the coordinator's line.
        work: Seconds of work of the coordinator's processes for each node in a phase.
        start: Seconds before the first phase and after the last.
    """

    wait: float
    trips: float
    bytes: float
    work: float
    start: float = 0.0

    def phase(self, *, nodes: int, delay: float = 0.0, rate: float = float("inf")) -> float:
        """Return the duration of one phase, in seconds.

        Args:
            nodes: Number of hospitals.
            delay: Duration of a round trip between hospital and coordinator, in seconds.
            rate: Bytes per second of the coordinator's line, which is shared by all hospitals.
        """
        return self.wait + self.trips * delay + nodes * self.bytes / rate + nodes * self.work

    def run(self, phases: int, *, nodes: int, delay: float = 0.0, rate: float = float("inf")) -> float:
        """Return the duration, in seconds, of a run with this number of phases."""
        return self.start + phases * self.phase(nodes=nodes, delay=delay, rate=rate)


def phases(queries: int, *, malicious: bool = True) -> int:
    """Return the number of phases in a run: two for the set-up, three (semi-honest: two) per query, one for the end."""
    return 2 + (3 if malicious else 2) * queries + 1
