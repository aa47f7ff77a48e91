"""Measurement of the time that a run spends on each kind of work, and a record of the queries that it asks."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from server.documents.rounds import WORK, RoundQuery
from server.federation.attempt import Answered


class Meter:
    """Measures the seconds spent on each kind of work, and counts the queries asked, since the last reading."""

    def __init__(self) -> None:
        self._seconds = dict.fromkeys(WORK, 0.0)
        self._queries: list[RoundQuery] = []

    @contextmanager
    def timed(self, kind: str) -> Iterator[None]:
        """Add the duration of the block to the time of this kind of work."""
        started = time.monotonic()
        try:
            yield
        finally:
            self._seconds[kind] += time.monotonic() - started

    def count(self, plan: Plan, answered: Answered) -> None:
        """Add an answered query to those since the last reading."""
        planned = plan.query(answered.index)
        self._queries.append(
            RoundQuery(
                index=answered.index,
                name=planned.name,
                mechanism=planned.mechanism,
                scale=planned.scale / planned.spec.noise_grid,
                noise=noise_in(plan, planned, answered.survivors) if planned.summed else None,
                survivors=answered.survivors,
                parties=plan.parties,
            )
        )

    def seconds(self) -> dict[str, float]:
        """Return the seconds measured since the last call, keyed by kind of work."""
        seconds, self._seconds = self._seconds, dict.fromkeys(WORK, 0.0)
        return {kind: round(spent, 3) for kind, spent in seconds.items()}

    def queries(self) -> list[RoundQuery]:
        """Return the queries asked since the last call."""
        queries, self._queries = self._queries, []
        return queries


def noise_in(plan: Plan, planned: PlannedQuery, survivors: int) -> float:
    """Return the standard deviation of the noise in a sum over this number of survivors, in the answer's unit."""
    return planned.noise_deviation * plan.surplus(planned, survivors)
