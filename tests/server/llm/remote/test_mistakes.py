"""Parameters that servers refuse, each named with its setting, and wrong addresses, shown without a login."""

from types import SimpleNamespace

import pytest

from common.errors import ModelSettingError, ProviderError
from server.llm.remote.mistakes import ADVICE, likely_mistake, url_tried
from server.llm.remote.retry import failure_of
from tests.support.loopback import error
from tests.support.provider_contract import requests


def openai_like(message, param=None):
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": None}}


def anthropic_like(message):
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


def fastapi_like(*place):
    return {"detail": [{"type": "extra_forbidden", "loc": ["body", *place], "msg": "Extra inputs are not permitted"}]}


REFUSED = [
    (openai_like("Unsupported value", "temperature"), "temperature=false"),
    (openai_like("Unsupported parameter: 'temperature' is not supported with this model."), "temperature=false"),
    ({"detail": "Unsupported parameter: temperature"}, "temperature=false"),
    (fastapi_like("temperature"), "temperature=false"),
    (anthropic_like("temperature: range: 0..1"), "max_temperature=1"),
    (anthropic_like("`temperature` and `top_p` cannot both be specified for this model."), "top_p=null"),
    (openai_like("no", "top_p"), "top_p=null"),
    (openai_like("Unsupported parameter", "max_tokens"), "length_field=max_completion_tokens"),
    (openai_like("max_tokens is not supported: use max_completion_tokens"), "length_field=max_completion_tokens"),
    (fastapi_like("max_completion_tokens"), "length_field=max_tokens"),
    (openai_like("max_tokens is too large: 9999", "max_tokens"), "max_tokens"),
    (openai_like("at most 99 completion tokens", "max_completion_tokens"), "max_tokens"),
    (anthropic_like("max_tokens: 100000 > 8192, the maximum of this model"), "max_tokens"),
    (fastapi_like("seed"), "seed=false"),
    (openai_like("unknown parameter: 'seed'"), "seed=false"),
    (openai_like("System role not supported"), "system_role=false"),
    (openai_like("Developer instruction is not enabled for this model"), "system_role=false"),
    (openai_like("Unsupported value: 'system'", "messages[0].role"), "system_role=false"),
    (anthropic_like("system.0.cache_control: Extra inputs are not permitted"), "prompt_caching=false"),
    (openai_like("no", "response_format"), "does not send it"),
    (fastapi_like("stop"), "does not send it"),
]
"""Bodies of errors, and a part of the advice."""
NOT_REFUSED = [
    openai_like("Invalid request: the note 'The temperature is not allowed to rise' is unsafe."),
    openai_like("The seed was sown, and is unsupported"),
    openai_like("string too long", "messages[0].content"),
    openai_like("a stop at the system"),
    {"detail": ["no place", {"loc": []}]},
    {"detail": [{"loc": ["body", "other"]}]},
    {},
    "a page",
    None,
]


class AnswerError(Exception):
    def __init__(self, status=None, body=""):
        super().__init__("no")
        self.status_code, self.body = status, body


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(("body", "setting"), REFUSED, ids=str)
def test_a_refused_parameter_is_hopeless_and_named_with_its_setting(status, body, setting):
    failure = failure_of(AnswerError(status, body), date=0)
    assert failure.kind == "hopeless"
    assert failure.refused in ADVICE
    assert setting in failure.advice("m")
    assert "NAME" not in failure.advice("m")
    assert failure_of(AnswerError(status, body.get("error", body)), date=0) == failure  # as the SDKs pass it on


def test_every_parameter_of_the_table_is_tried():
    assert {failure_of(AnswerError(400, body), date=0).refused for body, _ in REFUSED} == set(ADVICE)


@pytest.mark.parametrize("body", NOT_REFUSED, ids=str)
def test_another_error_loses_one_item(body):
    failure = failure_of(AnswerError(400, body), date=0)
    assert (failure.kind, failure.refused) == ("failed", "")


def test_a_template_without_a_system_role_fails_with_500_and_a_busy_server_is_asked_again():
    assert failure_of(AnswerError(500, openai_like("System role not supported")), date=0).refused == "system"
    assert failure_of(AnswerError(500, openai_like("'temperature' is not supported")), date=0).kind == "again"


REFUSAL = error("invalid_request_error", "Unsupported parameter: 'max_tokens' is not supported, see secret prompt")


@pytest.mark.parametrize("of_check", [True, False])
def test_it_stops_the_check_and_the_run_at_once(model, server, time, of_check):
    server.missing = of_check
    server.script = [(404, {}, {})] * of_check + [(400, {}, REFUSAL)]
    with pytest.raises(ModelSettingError, match=r"max_tokens.*llm\.models\.m\.length_field"):
        model.check() if of_check else model.generate(requests(3))
    assert len(server.seen) == 1
    assert not time.slept


@pytest.mark.parametrize(("fields", "quoted"), [({}, True), ({"good": ("an exemplar",)}, False)])
def test_the_server_is_quoted_only_where_the_prompt_is_public(model, server, fields, quoted):
    server.script = [(400, {}, REFUSAL)]
    with pytest.raises(ProviderError) as caught:
        model.generate(requests(1, **fields))
    assert ("secret prompt" in str(caught.value)) is quoted


OPENAI, ANTHROPIC = "/chat/completions", "/v1/messages"
HTML = (200, {"content-type": "text/html"}, b"<html>gateway</html>")


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
