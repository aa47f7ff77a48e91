"""One prompt is tried before any hospital is asked: an unreadable reply is shown, with what to change."""

import pytest

from common.errors import ProviderError
from server.llm.trial import try_request
from tests.support.loopback import chat
from tests.support.provider_contract import requests


@pytest.mark.parametrize("kind", ["openai"], indirect=True)
@pytest.mark.parametrize(
    ("n", "answer", "says"),
    [
        (
            2,
            "I will not make a list.",
            "stop",
            r"2 texts; got one without \(empty\): 'I will not make a list\.'.*per_request=1",
        ),
        (1, ("", "stop"), r"a text; got an empty one \(empty\).*llm\.models\.m\.model"),
        (1, ("", "length"), r"got an empty one \(truncated\).*llm\.models\.m\.max_tokens"),
        (1, ("Once upon a", "length"), r"\(truncated\): 'Once upon a'.*llm\.models\.m\.max_tokens"),
    ],
)
def test_an_unreadable_reply_is_shown(model, server, n, answer, says):
    written, stop = answer
    server.script = [(200, {}, chat([], written=written, stop=stop))]
    with pytest.raises(ProviderError, match=says):
        try_request(model, requests(1, n=n)[0])
    assert len(server.seen) == 1


def test_a_refusal_is_a_warning(model, server, kind, caplog):
    server.script = [(200, {}, kind.refusal)]
    try_request(model, requests(1)[0])
    assert "m declines a first prompt of this task" in caplog.text


def test_a_readable_reply_is_one_call_and_nothing_is_said(model, server, caplog):
    try_request(model, requests(1)[0])
    assert len(server.seen) == 1
    assert not caplog.records
