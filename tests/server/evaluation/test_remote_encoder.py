import numpy as np
import pytest

from client.records import embed_records
from common.domain import Record
from common.errors import ConfigError, ProviderError
from server.evaluation.remote_encoder import RemoteEncoder
from server.prepare.components import build_components
from server.prepare.compose import compose_settings
from tests.support.embedding_endpoint import remote_encoder


def test_vectors_are_unit_in_order_and_asked_for_in_batches(monkeypatch):
    encoder, sent = remote_encoder(monkeypatch, lambda texts: ([[len(text), 1.0] for text in texts], 200))
    vectors = encoder.encode(["a", "bbb", "cc"])
    expected = np.array([[1, 1], [3, 1], [2, 1]]) / np.sqrt([[2], [10], [5]])
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    assert vectors.dtype == np.float32
    assert sent == [["a", "bbb"], ["cc"]]


@pytest.mark.parametrize(
    ("vectors", "status", "got"),
    [
        ([[1.0, 0.0], [0.0, 1.0]], 401, "HTTP status 401"),
        ([[1.0, 0.0], [0.0, 1.0]], 500, "HTTP status 500"),
        ([[1.0, 0.0]], 200, "1 vectors"),
        ([[1.0, 0.0], [1.0]], 200, "2 widths"),
        ([[1.0, 0.0], [0.0, 0.0]], 200, "zero"),
    ],
)
def test_replies_that_are_not_one_vector_a_text_are_one_error_without_texts(monkeypatch, vectors, status, got):
    encoder, _ = remote_encoder(monkeypatch, lambda _: (vectors, status))
    with pytest.raises(ProviderError, match=got) as caught:
        encoder.encode(["zyxcanary", "b"])
    assert "zyxcanary" not in str(caught.value)


def test_encoder_at_an_endpoint_is_run_by_no_party_and_named_by_no_plan(monkeypatch):
    encoder, sent = remote_encoder(monkeypatch, lambda texts: ([[1.0]] * len(texts), 200))
    with pytest.raises(ConfigError):
        embed_records([Record("zyxcanary", "a")], encoder)
    with pytest.raises(ConfigError):
        _ = encoder.digest
    assert not sent


@pytest.mark.parametrize(
    ("variable", "value", "what"),
    [
        ("OPENAI_API_KEY", "", "evaluation.embedding"),
        ("OPENAI_API_KEY", '"secret"', "OPENAI_API_KEY"),
        ("https_proxy", "socks5://a:secret@p:1", "https_proxy"),
        ("NO_PROXY", "[::1]", "NO_PROXY"),
    ],
)
def test_variable_that_cannot_be_used_is_named_before_anything_is_sent(monkeypatch, variable, value, what):
    monkeypatch.setenv("OPENAI_API_KEY", "a-word")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError) as refused:
        RemoteEncoder(model="m")
    assert refused.value.what == what
    assert "secret" not in str(refused.value)


def test_run_that_would_vote_by_an_endpoint_stops_at_the_plan(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a-word")
    with pytest.raises(ConfigError, match=r"^embedding;"):
        build_components(compose_settings(["embedding=openai_compatible"]))
    chosen = ["+embedding@evaluation.embedding=openai_compatible", "evaluation.model=encoder", "task.public_notes=60"]
    parts = build_components(compose_settings(chosen))
    assert isinstance(parts.evaluation.embedding, RemoteEncoder)
