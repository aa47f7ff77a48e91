"""Parts of a message of Flower's that are still on the way."""

import time

from flwr.supercore.inflatable.inflatable_utils import ObjectUnavailableError


def asked_again_after(pull_objects):
    """Seconds until `pull_objects` asks once more for a part that was not there, which it then returns."""
    asked = []

    def pulled(_):
        asked.append(time.monotonic())
        if len(asked) == 1:
            raise ObjectUnavailableError("part")
        return b"content"

    assert pull_objects(["part"], pulled) == {"part": b"content"}
    return asked[1] - asked[0]
