"""The real SDK against a server on loopback that speaks the Messages wire format."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from common.errors import ConfigError, ProviderError
from common.llm.anthropic import Anthropic
from common.llm.base import Provider
from common.llm.cache import Cached
from common.llm.render import render
from tests.contracts.providers import ProviderContract, requests

KEY = "sk-test-key-of-nobody"
QUICK = {"retry-after": "0.001"}


def message(texts, stop="end_turn", written=None):
    text = json.dumps(texts) if written is None else written
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": [{"type": "text", "text": text}],
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 5},
    }


def error(kind):
    return {"type": "error", "error": {"type": kind, "message": "no"}}


class Server:
    """Answers from `script`, a list of (status, headers, body), then with fresh texts for ever."""

    def __init__(self):
        self.script, self.seen, self.headers, self.active, self.most = [], [], [], 0, 0
        self.lock, self.together = threading.Lock(), None
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                owner.answer(self)

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def answer(self, handler):
        body = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
        with self.lock:
            self.active += 1
            self.most = max(self.most, self.active)
            number = len(self.seen)
            self.seen.append(body)
            self.headers.append(dict(handler.headers))
            fresh = message([f"text {number}.{k}" for k in range(9)])
            status, headers, reply = self.script.pop(0) if self.script else (200, {}, fresh)
        if self.together is not None:
            self.together.wait(5)
        with self.lock:
            self.active -= 1
        payload = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        handler.send_response(status)
        for name, value in ({"content-type": "application/json"} | headers).items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(payload)))
        handler.end_headers()
        handler.wfile.write(payload)

    def close(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


@pytest.fixture
def model(server, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    return Anthropic(name="claude", model="claude-test", max_tokens=300, concurrency=1, base_url=server.url)


class TestAnthropic(ProviderContract):
    @pytest.fixture
    def provider(self, model) -> Provider:
        return model


class TestCachedAnthropic(ProviderContract):
    @pytest.fixture
    def provider(self, model, tmp_path) -> Provider:
        return Cached(provider=model, path=tmp_path / "replies.sqlite")


def test_without_a_key_it_stops_at_once(monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ProviderError, match="ANTHROPIC_API_KEY"):
        Anthropic(name="claude", model="claude-test")


@pytest.mark.parametrize("wrong", [{"max_tokens": 0}, {"max_tokens": 30_000}, {"concurrency": 0}, {"model": ""}])
def test_wrong_settings(monkeypatch, wrong):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with pytest.raises(ConfigError):
        Anthropic(**({"name": "claude", "model": "claude-test"} | wrong))


def test_nothing_goes_out_but_the_prompt(model, server):
    request = requests(1, good=("Where is it?",), temperature=0.3)[0]
    reply = model.generate([request])[0]
    system, user = render(request)
    assert server.seen == [
        {
            "model": "claude-test",
            "max_tokens": 300,
            "system": system,
            "messages": [{"role": "user", "content": user}],
        }
    ]
    assert reply.texts == ("text 0.0", "text 0.1")
    assert (reply.input_tokens, reply.output_tokens) == (11, 5)
    assert any(KEY in value for value in server.headers[0].values())


def test_overload_and_faults_are_tried_again(model, server):
    server.script = [
        (429, QUICK, error("rate_limit_error")),
        (500, QUICK, error("api_error")),
        (529, QUICK, error("overloaded_error")),
    ]
    assert model.generate(requests(1))[0].texts
    assert len(server.seen) == 4


@pytest.mark.parametrize(
    "bad",
    [
        (200, {}, message([], stop="refusal", written="I would rather not.")),
        (200, {}, message([], written="")),
        (200, {}, message([], written="[]")),
        (200, {}, {}),
        (200, {}, {**message([]), "content": None, "usage": None}),
        (200, {}, b'{"id": "msg_1", "conte'),
        (200, {"content-type": "text/html"}, b"<html>gateway</html>"),
        (400, {}, error("invalid_request_error")),
    ],
    ids=["refusal", "empty", "empty list", "no field", "null fields", "cut off", "html", "400"],
)
def test_one_lost_item_is_an_empty_reply(model, server, bad):
    server.script = [bad]
    first, second = model.generate(requests(2))
    assert first.texts == ()
    assert len(second.texts) == 2


def test_a_text_that_breaks_off_gives_its_complete_items(model, server):
    server.script = [(200, {}, message([], stop="max_tokens", written='["whole", "in two, the sec'))]
    assert model.generate(requests(1))[0].texts == ("whole",)


@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_hopeless_errors_stop_the_run_without_key_or_prompt(model, server, status):
    server.script = [(status, {}, error("no"))] * 2
    with pytest.raises(ProviderError) as caught:
        model.generate(requests(2, good=("an exemplar",)))
    shown = str(caught.value)
    assert str(status) in shown
    assert KEY not in shown
    assert "exemplar" not in shown


def test_when_every_item_fails_the_run_stops(model, server):
    server.script = [(400, {}, error("invalid_request_error"))] * 3
    with pytest.raises(ProviderError):
        model.generate(requests(3))


def test_when_every_answer_is_malformed_the_run_stops(model, server):
    server.script = [(200, {"content-type": "text/html"}, b"<html>gateway</html>")] * 2
    with pytest.raises(ProviderError, match="Malformed"):
        model.generate(requests(2))


def test_no_server_is_a_provider_error(server, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setattr("common.llm.anthropic._RETRIES", 0)
    gone = Anthropic(name="claude", model="claude-test", base_url="http://127.0.0.1:9")
    with pytest.raises(ProviderError, match="APIConnectionError"):
        gone.generate(requests(1))


def test_concurrency_is_used_and_bounded(server, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    server.together = threading.Barrier(3)
    model = Anthropic(name="claude", model="claude-test", concurrency=3, base_url=server.url)
    assert len(model.generate(requests(6))) == 6
    assert server.most == 3


def test_the_key_is_shown_nowhere(model):
    assert KEY not in repr(model) + repr(vars(model)) + model.identity


def test_identity_names_model_and_settings(model, monkeypatch):
    other = Anthropic(name="claude", model="claude-other", max_tokens=300)
    assert other.identity != model.identity
