from functools import partial

import numpy as np
import pytest

from client.records import embed_records
from common.domain import Record
from common.errors import ConfigError, ProviderError
from server.evaluation.remote_encoder import RemoteEncoder
from server.prepare.compose import compose_settings
from tests.support.embedding_endpoint import remote_encoder


@pytest.fixture
def endpoint(monkeypatch):
    return partial(remote_encoder, monkeypatch)


def test_vectors_are_unit_in_order_and_asked_for_in_batches(endpoint):
    encoder, sent = endpoint(lambda texts: ([[len(text), 1.0] for text in texts], 200))
    vectors = encoder.encode(["a", "bbb", "cc"])
    expected = np.array([[1, 1], [3, 1], [2, 1]]) / np.sqrt([[2], [10], [5]])
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    assert vectors.dtype == np.float32
    assert sent == [["a", "bbb"], ["cc"]]


@pytest.mark.parametrize(
    ("vectors", "status", "got"),
    [
        ([[1.0, 0.0], [0.0, 1.0]], 401, "AuthenticationError, HTTP status 401"),
        ([[1.0, 0.0], [0.0, 1.0]], 500, "InternalServerError, HTTP status 500"),
        ([[1.0, 0.0]], 200, "1 vectors for 2 texts"),
        ([[1.0, 0.0], [1.0]], 200, "vectors of 2 widths"),
        ([[1.0, 0.0], [0.0, 0.0]], 200, "vectors that are zero or not finite"),
    ],
)
def test_what_is_not_one_vector_a_text_is_one_clear_error_without_texts(endpoint, vectors, status, got):
    encoder, _ = endpoint(lambda _: (vectors, status))
    with pytest.raises(ProviderError, match=got) as caught:
        encoder.encode(["zyxcanary", "b"])
    assert "zyxcanary" not in str(caught.value)


def test_no_party_runs_it_and_no_plan_names_it(endpoint):
    encoder, sent = endpoint(lambda texts: ([[1.0]] * len(texts), 200))
    with pytest.raises(ConfigError, match="never sent"):
        embed_records([Record("zyxcanary", "a")], encoder)
    with pytest.raises(ConfigError, match=r"^embedding;"):
        _ = encoder.digest
    assert not sent


def test_without_a_key_nothing_is_made(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        RemoteEncoder(model="m")


@pytest.mark.parametrize(
    ("variable", "value"),
    [("OPENAI_API_KEY", '"secret"'), ("https_proxy", "socks5://a:secret@p:1"), ("NO_PROXY", "[::1]")],
)
def test_a_variable_that_cannot_be_used_is_named_before_anything_is_sent(monkeypatch, variable, value):
    monkeypatch.setenv("OPENAI_API_KEY", "a-word")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError) as refused:
        RemoteEncoder(model="m")
    assert refused.value.what == variable
    assert "secret" not in str(refused.value)


def test_a_run_that_would_vote_by_it_stops_at_the_plan(monkeypatch):
    from server.prepare.components import build_components

    monkeypatch.setenv("OPENAI_API_KEY", "a-word")
    with pytest.raises(ConfigError, match=r"^embedding;"):
        build_components(compose_settings(["embedding=openai_compatible"]))
    chosen = ["+embedding@evaluation.embedding=openai_compatible", "evaluation.model=encoder", "task.public_notes=60"]
    parts = build_components(compose_settings(chosen))
    assert isinstance(parts.evaluation.embedding, RemoteEncoder)
