"""One prompt is tried before any hospital is asked: an unreadable reply is shown, with what to change."""

import pytest

from common.errors import ModelSettingError
from server.llm.trial import try_prompt
from tests.support.direct_federation import TASK
from tests.support.loopback import chat


@pytest.mark.parametrize("kind", ["openai"], indirect=True)
@pytest.mark.parametrize(
    ("n", "answer", "says"),
    [
        (2, ("I make no list.", "stop"), r"2 texts; got one without \(empty\): 'I make no list\.'.*per_request=1"),
        (1, ("", "stop"), r"a text; got an empty one \(empty\).*llm\.models\.m\.model"),
        (1, ("", "length"), r"got an empty one \(truncated\).*llm\.models\.m\.max_tokens"),
        (1, ("Once upon a", "length"), r"\(truncated\): 'Once upon a'.*llm\.models\.m\.max_tokens"),
    ],
)
def test_an_unreadable_reply_is_shown(model, server, n, answer, says):
    written, stop = answer
    server.script = [(200, {}, chat([], written=written, stop=stop))]
    with pytest.raises(ModelSettingError, match=says):
        try_prompt(model, TASK, texts=n)
    assert len(server.seen) == 1


def test_a_refusal_is_a_warning(model, server, kind, caplog):
    server.script = [(200, {}, kind.refusal)]
    try_prompt(model, TASK)
    assert "m declines a first prompt of this task" in caplog.text


def test_a_readable_reply_is_one_call_and_nothing_is_said(model, server, caplog):
    try_prompt(model, TASK)
    assert len(server.seen) == 1
    assert not caplog.records
