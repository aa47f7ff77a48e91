"""Remote models of both kinds against a server on loopback, in time that nobody waits for."""

import pytest

from tests.support import loopback
from tests.support.remote_models import KEY, KINDS, Time


@pytest.fixture
def server():
    server = loopback.Loopback()
    yield server
    server.close()


@pytest.fixture
def time():
    return Time()


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.fixture
def build(server, time, kind, monkeypatch):
    """A model with changed settings."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def built(**changes):
        settings = {
            "name": "m",
            "model": "test-model",
            "max_tokens": 300,
            "concurrency": 1,
            "timeout": 60.0,
            "base_url": server.url + kind.path,
            "clock": time.clock,
        }
        return kind.build(**settings | changes)

    return built


@pytest.fixture
def model(build):
    return build()


@pytest.fixture
def sent(server):
    """Sends requests, and returns the bodies that reached the server."""

    def bodies(provider, asked):
        before = len(server.seen)
        provider.generate(asked)
        return server.seen[before:]

    return bodies
