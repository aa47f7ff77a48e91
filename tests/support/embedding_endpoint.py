"""An embedding endpoint without a network."""

import json

import httpx
import openai

from server.evaluation.remote_encoder import RemoteEncoder


def remote_encoder(monkeypatch, serve):
    """Return an encoder with the server `serve(texts) -> vectors, status`, and a list of each request's texts."""
    monkeypatch.setenv("OPENAI_API_KEY", "a-word")
    sent = []

    def handle(request):
        texts = json.loads(request.content)["input"]
        sent.append(texts)
        vectors, status = serve(texts)
        data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(vectors)]
        return httpx.Response(status, json={"object": "list", "data": data[::-1], "model": "m", "usage": None})

    encoder = RemoteEncoder(model="m", batch=2)
    client = httpx.Client(transport=httpx.MockTransport(handle))
    encoder._client = openai.OpenAI(api_key="a word", http_client=client, max_retries=0)
    return encoder, sent
