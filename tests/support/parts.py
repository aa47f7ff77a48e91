"""The parts of a Flower message: their number, and the wait before a missing part is requested again."""

import time

from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects
from flwr.supercore.inflatable.inflatable_utils import ObjectUnavailableError


def parts_of(content):
    """Return the parts of a message's content, keyed by name."""
    return get_all_nested_objects(content)


def asked_again_after(pull_objects):
    """Return the seconds until `pull_objects` requests a missing part again; the second request succeeds."""
    calls = []

    def pulled(_):
        calls.append(time.monotonic())
        if len(calls) == 1:
            raise ObjectUnavailableError("part")
        return b"content"

    assert pull_objects(["part"], pulled) == {"part": b"content"}
    return calls[1] - calls[0]
