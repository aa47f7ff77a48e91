"""The Grid of a deployed run: it asks often for the rest of a reply, and stops when the exchange ends."""

from collections.abc import Callable

from flwr.supercore.inflatable.inflatable_utils import pull_objects

PART_SECONDS = 0.05
"""Seconds before a missing part of a reply is requested again. The wait doubles each time."""


def ask_for_parts_sooner(seconds_left: Callable[[], float]) -> None:
    """Shorten the waits of Flower's Grid in this process.

    A reply is seen as soon as its node begins to send it. Flower asks again for missing parts after a second and, if
    the network is cut meanwhile, for up to two hours; here it does so for no longer than the exchange may take.

    Args:
        seconds_left: Seconds that a reply of this exchange may still take.
    """
    from flwr.superlink.grid import http_grid

    def pulled(object_ids: list[str], pull_object_fn: Callable[[str], bytes]) -> dict[str, bytes]:
        return pull_objects(object_ids, pull_object_fn, initial_backoff=PART_SECONDS, max_time=seconds_left())

    http_grid.pull_objects = pulled  # type: ignore[assignment, attr-defined]
