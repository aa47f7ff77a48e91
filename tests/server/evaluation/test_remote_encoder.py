import json

import httpx
import numpy as np
import openai
import pytest

from client.guard import Limits
from client.service import PartyService
from common.domain import Record
from common.errors import ConfigError, ProviderError
from common.ledger.ledger import Ledger
from server.app import composed
from server.domain import Candidate
from server.evaluation.of_texts import of_texts
from server.evaluation.remote_encoder import RemoteEncoder
from server.evaluation.small_model import Evaluation
from simulations import only_private
from simulations.private_evaluation.of_records import MeasuredWithRecords, of_records
from tests.support.federations import ENCODER


@pytest.fixture
def endpoint(monkeypatch):
    """An encoder whose server is `serve(texts) -> vectors, status`, and what it was sent."""
    monkeypatch.setenv("OPENAI_API_KEY", "a word")

    def make(serve):
        sent = []

        def handle(request):
            texts = json.loads(request.content)["input"]
            sent.append(texts)
            vectors, status = serve(texts)
            data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(vectors)]
            return httpx.Response(status, json={"object": "list", "data": data[::-1], "model": "m", "usage": None})

        made = RemoteEncoder(model="m", batch=2)
        client = httpx.Client(transport=httpx.MockTransport(handle))
        made._client = openai.OpenAI(api_key="a word", http_client=client, max_retries=0)
        return made, sent

    return make


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


def test_no_party_runs_it_and_no_plan_names_it(endpoint, tmp_path):
    encoder, sent = endpoint(lambda texts: ([[1.0]] * len(texts), 200))
    with pytest.raises(ConfigError, match="private text is never sent anywhere; got RemoteEncoder"):
        PartyService(
            party=0, private=[Record("zyxcanary", "a")], encoder=encoder, limits=Limits(),
            ledger=Ledger(tmp_path / "ledger.db"),
        )  # fmt: skip
    with pytest.raises(ConfigError, match="embedding; expected an encoder that every party runs itself"):
        _ = encoder.digest
    assert not sent


def test_without_a_key_nothing_is_made(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="a key in the environment variable OPENAI_API_KEY"):
        RemoteEncoder(model="m")


def test_a_run_that_would_vote_by_it_stops_at_the_plan(monkeypatch):
    from server.app import Parts

    monkeypatch.setenv("OPENAI_API_KEY", "a word")
    with pytest.raises(ConfigError, match="embedding; expected an encoder that every party runs itself"):
        Parts(composed(["embedding=openai_compatible"]))
    chosen = ["+embedding@evaluation.embedding=openai_compatible", "evaluation.model=encoder", "task.public_notes=60"]
    parts = Parts(composed(chosen))
    assert isinstance(parts.evaluation.embedding, RemoteEncoder)


def test_no_private_record_is_sent_to_it_by_the_comparison_of_a_simulation(endpoint):
    encoder, sent = endpoint(lambda texts: ([[len(text), 1.0] for text in texts], 200))
    evaluation = Evaluation(model="encoder", embedding=encoder, metrics=["utility"])
    held_out, private = [Record("held out", "a"), Record("so is this", "b")], [Record("zyxcanary", "a")]
    measured = MeasuredWithRecords(
        candidates=[Candidate(text=text, label=label, model="m", round=0) for text, label in (("x", "a"), ("yy", "b"))],
        test=held_out, evaluation=evaluation, encoder=ENCODER, private=private,
    )  # fmt: skip
    assert of_texts(measured)["utility"]["accuracy"]["value"] is not None
    assert sent
    group = of_records(measured)["utility_real"]
    assert group["value"] is None
    assert "private text is never sent anywhere" in group["reason"]
    assert "zyxcanary" not in str(sent)


def test_a_baseline_of_private_records_does_not_begin_with_it(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a word")
    chosen = ["+embedding@evaluation.embedding=openai_compatible", "task.public_notes=60"]
    private = [Record("zyxcanary", "a"), Record("b", "b")]
    with pytest.raises(ConfigError, match=r"evaluation\.embedding; expected an encoder that runs here"):
        only_private.score(composed([*chosen, "evaluation.model=encoder"]), private, private)
    assert only_private.score(composed(chosen), private, private)["records"] == 2  # TF-IDF asks no encoder
