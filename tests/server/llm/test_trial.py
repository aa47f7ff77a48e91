"""One prompt is tried before any hospital is asked: an unreadable reply is shown, with what to change."""

from types import SimpleNamespace

import pytest

from common.errors import ModelSettingError
from server.llm.base import Reply
from server.llm.cache import Cached
from server.prepare.model_checks import try_prompt
from server.run import _check_models
from tests.support.direct_federation import TASK
from tests.support.loopback import chat


@pytest.mark.parametrize("kind", ["openai"], indirect=True)
@pytest.mark.parametrize(
    ("n", "answer", "says"),
    [
        (2, ("I make no list.", "stop"), r"2 texts; .*\(unreadable\): 'I make no list\.'.*llm\.prompts"),
        (1, ("", "stop"), r"\(empty\)"),
        (1, ("", "length"), r"\(truncated\).*llm\.models\.m\.max_tokens"),
        (1, ("Once upon a", "length"), r"\(truncated\): 'Once upon a'.*llm\.models\.m\.max_tokens"),
    ],
)
def test_an_unreadable_reply_is_shown(model, server, n, answer, says):
    written, stop = answer
    server.script = [(200, {}, chat([], written=written, stop=stop))] * 3
    with pytest.raises(ModelSettingError, match=says):
        try_prompt(model, TASK, texts=n)
    assert len(server.seen) == (1 if stop == "length" else 3)


def test_a_refusal_is_a_warning_and_of_a_readable_reply_nothing_is_said(model, server, kind, caplog):
    try_prompt(model, TASK)
    assert len(server.seen) == 1
    assert not caplog.records
    server.script = [(200, {}, kind.refusal)]
    try_prompt(model, TASK)
    assert "m declines" in caplog.text


@pytest.mark.parametrize("kind", ["openai"], indirect=True)
def test_an_unreadable_reply_is_not_cached_and_one_that_can_be_read_is_enough(model, server, tmp_path):
    cached = Cached(provider=model, path=tmp_path / "replies.db")
    server.script = [(200, {}, chat([], written="I make no list."))] * 5
    with pytest.raises(ModelSettingError):
        try_prompt(cached, TASK, texts=2)
    try_prompt(cached, TASK, texts=2)
    assert len(server.seen) == 6
    try_prompt(cached, TASK, texts=2)
    assert len(server.seen) == 7


def test_a_run_stops_only_if_the_replies_of_no_model_can_be_read(caplog):
    good, poor = (SimpleNamespace(name=name, remote=True, check=lambda: None) for name in ("good", "poor"))
    method = SimpleNamespace(max_texts=lambda *_: 1, texts_per_request=1)
    good.generate = lambda _: [Reply(texts=("a text",), input_tokens=1, output_tokens=1)]
    poor.generate = lambda _: [Reply(texts=(), input_tokens=1, output_tokens=1, raw="Hm.")]

    def check(**providers):
        _check_models(method, SimpleNamespace(providers=providers, task=TASK, models=(), experiment_seed=0))

    check(good=good, poor=poor)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    with pytest.raises(ModelSettingError):
        check(poor=poor)

    def refuse(_):
        raise ModelSettingError("the server refuses a parameter")

    poor.generate = refuse
    with pytest.raises(ModelSettingError):
        check(good=good, poor=poor)
