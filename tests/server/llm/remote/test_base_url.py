"""Wrong addresses: the error shows the one that was tried, without a login, and the likely mistake."""

from types import SimpleNamespace

import pytest

from common.errors import ModelSettingError, ProviderError
from server.llm.remote.mistakes import likely_mistake, url_tried
from tests.support.provider_contract import requests

OPENAI, ANTHROPIC = "/chat/completions", "/v1/messages"
HTML = (200, {"content-type": "text/html"}, b"<html>gateway</html>")


class AnswerError(Exception):
    def __init__(self, status=None, body="", message="no"):
        super().__init__(message)
        self.status_code, self.body = status, body


def caused(by):
    error = AnswerError()
    error.__cause__ = OSError("broken")
    error.__cause__.__cause__ = OSError(by)
    return error


@pytest.mark.parametrize(
    ("base", "endpoint", "error", "word"),
    [
        ("http://h:1", OPENAI, AnswerError(404), "is /v1 missing in base_url, http://h:1/v1?"),
        ("http://h:1", OPENAI, ValueError(), "/v1 missing"),
        ("http://h:1/v1/v1", OPENAI, AnswerError(404), "twice"),
        ("http://h:1/v1", ANTHROPIC, AnswerError(404), "twice"),
        ("http://h:1/v1/chat/completions", OPENAI, AnswerError(404), "leave /chat/completions out"),
        ("http://h:1/v1", OPENAI, AnswerError(404), ""),
        ("https://h/v1beta/openai", OPENAI, AnswerError(404), ""),
        ("http://h:1", ANTHROPIC, AnswerError(404), ""),
        ("http://h:1", OPENAI, AnswerError(500), ""),
        ("http://h:1", OPENAI, caused("refused"), ""),
        (None, OPENAI, AnswerError(404), ""),
        ("http://h:1/v1", OPENAI, AnswerError(400, "The plain HTTP request was sent to HTTPS port"), "https://"),
        ("https://h:1/v1", OPENAI, caused("[SSL: WRONG_VERSION_NUMBER] wrong"), "http://"),
    ],
    ids=str,
)
def test_the_likely_mistake(base, endpoint, error, word):
    mistake = likely_mistake(base, endpoint, error)
    assert word in mistake
    assert bool(word) is bool(mistake)


def test_the_address_that_was_tried_has_no_login_and_no_query():
    request = SimpleNamespace(url="https://user:secret@h:1/v1/x?key=secret#secret")
    assert url_tried(SimpleNamespace(request=request), default="") == "https://h:1/v1/x"
    assert url_tried(ValueError(), default="http://h") == "http://h"


@pytest.mark.parametrize("kind", ["openai"], indirect=True)
@pytest.mark.parametrize("answer", [(404, {}, b"<h1>Not Found</h1>"), HTML])
def test_a_wrong_path_is_named_and_no_resumed_run_is_promised(build, server, answer):
    server.missing = True
    server.script = [answer] * 2
    model = build(base_url=server.url)
    with pytest.raises(ModelSettingError, match=r"/v1 missing.*new run"):
        model.generate(requests(1))


def test_after_an_answer_the_address_is_right(build, server, kind):
    model = build()
    model.generate(requests(1))
    server.script = [(401, {}, {})]
    with pytest.raises(ProviderError, match=f"{server.url}.*are kept") as caught:
        model.generate(requests(1))
    assert not isinstance(caught.value, ModelSettingError)
