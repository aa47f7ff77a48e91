"""The parts of a message of Flower's: how many there are, and when one that is still on the way is asked for again."""

import time

from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects
from flwr.supercore.inflatable.inflatable_utils import ObjectUnavailableError


def parts_of(content):
    """The parts of a message's content, by their names."""
    return get_all_nested_objects(content)


def asked_again_after(pull_objects):
    """Seconds until `pull_objects` asks once more for a part that was not there, which it then returns."""
    calls = []

    def pulled(_):
        calls.append(time.monotonic())
        if len(calls) == 1:
            raise ObjectUnavailableError("part")
        return b"content"

    assert pull_objects(["part"], pulled) == {"part": b"content"}
    return calls[1] - calls[0]
