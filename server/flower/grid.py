"""Flower's Grid in a deployed run: missing parts of a reply are requested often, as long as the exchange lasts."""

from collections.abc import Callable

from flwr.supercore.inflatable.inflatable_utils import pull_objects

PART_SECONDS = 0.05
"""Seconds before a missing part of a reply is requested again. The wait doubles each time."""


def ask_for_parts_sooner(seconds_left: Callable[[], float]) -> None:
    """Shorten the waits of Flower's Grid in this process.

    The Grid sees a reply as soon as the node begins to send it. Flower waits a second before it requests missing parts
    again and, if the network fails meanwhile, continues for up to two hours; here it stops when the time for the
    exchange is over.

    Args:
        seconds_left: Returns the number of seconds left for replies in this exchange.
    """
    from flwr.superlink.grid import http_grid

    def pulled(object_ids: list[str], pull_object_fn: Callable[[str], bytes]) -> dict[str, bytes]:
        return pull_objects(object_ids, pull_object_fn, initial_backoff=PART_SECONDS, max_time=seconds_left())

    http_grid.pull_objects = pulled  # type: ignore[assignment, attr-defined]
