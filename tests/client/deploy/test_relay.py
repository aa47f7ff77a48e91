"""The relay waits for what comes, and not for what does not."""

import pytest
from flwr.proto.message_pb2 import PullObjectRequest, PullObjectResponse

from client.deploy import relay

ASKED = PullObjectRequest()


def test_a_message_whose_parts_stop_coming_is_given_up(monkeypatch):
    now, parts = [0.0], []
    monkeypatch.setattr(relay.time, "monotonic", lambda: now[0])
    pull = relay._while_parts_come(lambda _: PullObjectResponse(object_found=True, object_available=parts.pop(0)))
    parts += [False, True, False, False]
    pull(ASKED)
    now[0] = relay.PART_SECONDS
    pull(ASKED)  # a part has come: the wait begins anew
    now[0] += relay.PART_SECONDS
    pull(ASKED)
    now[0] += 1
    with pytest.raises(TimeoutError):
        pull(ASKED)
