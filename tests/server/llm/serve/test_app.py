"""The server in this process: tiny models under both engines, without a socket."""

import asyncio
import json
import logging

import httpx
import pytest

from common.errors import ConfigError
from server.llm.serve.app import MOST_TOKENS, application, read_job
from server.llm.serve.model import ChatModel
from tests.support.tiny_gguf import tiny_gguf
from tests.support.tiny_models import tiny_llama

CONTEXT = 1024
TURNS = [{"role": "system", "content": "You write."}, {"role": "user", "content": "Write of my card."}]


@pytest.fixture(scope="module", params=[pytest.param("openvino", marks=pytest.mark.openvino), "transformers"])
def folder(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "model"
    if request.param == "openvino":
        return tiny_gguf(folder, context=CONTEXT)
    return tiny_llama(folder, chat=True, context=CONTEXT, scale=0.1)


@pytest.fixture(scope="module")
def model(folder):
    return ChatModel(str(folder))


def body(served, **changes):
    return {"model": served.name, "messages": TURNS, "max_tokens": 24, "seed": 5} | changes


def sent(model, *requests, path="/v1/chat/completions"):
    """Responses to these requests, which are under way at once; a request is a body, its bytes, or None for GET."""

    async def ask(client, request):
        if request is None:
            return await client.get(path)
        content = request if isinstance(request, bytes) else json.dumps(request).encode()
        return await client.post(path, content=content)

    async def all_at_once():
        transport = httpx.ASGITransport(application(model))
        async with httpx.AsyncClient(transport=transport, base_url="http://own") as client:
            return await asyncio.gather(*(ask(client, request) for request in requests))

    return asyncio.run(all_at_once())


def texts(responses):
    return [response.json()["choices"][0]["message"]["content"] for response in responses]


def test_an_answer_is_the_engines_for_this_prompt_and_seed_and_is_counted(model):
    job = model.job(TURNS, max_tokens=24, seed=5)
    written = []
    model.engine.sample([job], lambda _, continuations: written.extend(continuations))
    (response,) = sent(model, body(model))
    answer = response.json()
    (choice,) = answer["choices"]
    assert choice["message"] == {"role": "assistant", "content": model.checkpoint.text(written[0]), "refusal": None}
    assert choice["finish_reason"] == ("length" if len(written[0]) == 24 else "stop")
    read, wrote = len(job.ids), len(written[0])
    assert answer["usage"] == {"prompt_tokens": read, "completion_tokens": wrote, "total_tokens": read + wrote}
    assert (answer["object"], answer["model"]) == ("chat.completion", model.name)


def test_texts_of_a_seed_are_the_same_alone_and_among_others_and_without_one_they_differ(model):
    together = texts(sent(model, *(body(model, seed=seed) for seed in range(8))))
    alone = [texts(sent(model, body(model, seed=seed)))[0] for seed in range(8)]
    assert together == alone
    assert len(set(together)) > 4
    assert len(set(texts(sent(model, *[body(model, seed=None)] * 4)))) > 1


def test_the_models_are_this_one(model):
    (listed,) = sent(model, None, path="/v1/models")
    (named,) = sent(model, None, path=f"/v1/models/{model.name}")
    assert listed.json()["object"] == "list"
    assert [card["id"] for card in listed.json()["data"]] == [model.name]
    assert named.json() == listed.json()["data"][0]


def refusal(response):
    error = response.json()["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert error["message"]
    assert error["type"] == ("server_error" if response.status_code >= 500 else "invalid_request_error")
    return response.status_code, error["param"], error["code"]


TURN = TURNS[1]
WRONG = [
    *((wrong, "body") for wrong in (b"{", b"\xff", b"[" * 100_000, b"[]")),
    ({"messages": None}, "messages"),
    ({"tools": []}, "tools"),
    ({"max_completion_tokens": 1}, "max_completion_tokens"),
    ({"max_tokens": CONTEXT}, "max_tokens"),
    ({"max_tokens": None, "max_completion_tokens": CONTEXT + 1}, "max_completion_tokens"),
    *(({"max_tokens": wrong}, "max_tokens") for wrong in (0, 7.0, True)),
    *(({"messages": wrong}, "messages") for wrong in ([], "Write.")),
    ({"messages": [TURN, "Write."]}, "messages[1]"),
    ({"messages": [{"content": "secret"}]}, "messages[0].role"),
    ({"messages": [TURN | {"role": "tool"}]}, "messages[0].role"),
    *(({"messages": [TURN | {"content": wrong}]}, "messages[0].content") for wrong in (["secret"], "secret\ud83d")),
    *(({"temperature": wrong}, "temperature") for wrong in (2.1, "warm", float("nan"))),
    ({"top_p": 0}, "top_p"),
    *(({"seed": wrong}, "seed") for wrong in (-1, 2**63, 1.0)),
    ({"n": 2}, "n"),
    *(({"stream": wrong}, "stream") for wrong in (True, 0)),
]


@pytest.mark.parametrize(("wrong", "field"), WRONG, ids=str)
def test_a_wrong_body_is_refused_by_the_name_of_its_field(model, wrong, field):
    (response,) = sent(model, wrong if isinstance(wrong, bytes) else body(model, **wrong))
    assert refusal(response) == (400, field, None)
    assert "secret" not in response.text


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_fields_that_are_null_or_missing_have_their_defaults(model, field):
    asked = body(model, max_tokens=None, n=None, stream=None, temperature=None, top_p=None)
    job = read_job(json.dumps(asked).encode(), model)
    assert (job.max_new_tokens, job.temperature, job.top_p, job.seed) == (MOST_TOKENS, 1.0, 1.0, 5)
    developer = [{"role": "developer", "content": "You write."}, TURN]
    chosen = asked | {field: 7, "temperature": 0, "top_p": 0.5, "messages": developer}
    other = read_job(json.dumps(chosen).encode(), model)
    assert (other.max_new_tokens, other.temperature, other.top_p, other.ids) == (7, 0, 0.5, job.ids)


def test_a_prompt_fits_up_to_the_last_token(model):
    read = len(model.job(TURNS, max_tokens=24).ids)
    fits, too_long = (body(model, max_tokens=CONTEXT - read + more) for more in (0, 1))
    assert [response.status_code for response in sent(model, fits)] == [200]
    assert refusal(sent(model, too_long)[0]) == (400, "messages", "context_length_exceeded")


def test_what_is_not_served_has_errors_of_the_same_form(model):
    unknown = (404, "model", "model_not_found")
    assert refusal(sent(model, None, path="/v1/models/another/one")[0]) == unknown
    assert refusal(sent(model, body(model, model="another/one"))[0]) == unknown
    assert refusal(sent(model, None, path="/v1/completions")[0]) == (404, None, None)
    assert refusal(sent(model, None)[0]) == (405, None, None)


def test_a_failing_engine_is_a_server_error_without_the_prompt(model, monkeypatch, caplog):
    def fails(jobs, done):
        raise RuntimeError("Write of my card.")

    monkeypatch.setattr(model.engine, "sample", fails, raising=False)
    with caplog.at_level(logging.DEBUG):
        (response,) = sent(model, body(model))
    assert refusal(response) == (500, None, None)
    assert "my card" not in response.text + caplog.text


def test_messages_that_the_template_refuses_are_a_wrong_field(model, monkeypatch):
    monkeypatch.setattr(model.checkpoint.tokenizer, "chat_template", "{{ raise_exception('system first') }}")
    assert refusal(sent(model, body(model))[0]) == (400, "messages", None)


def test_a_client_that_leaves_takes_its_request_along(model):
    """Its place in the queue, that is; who only waits for an answer is not sent one."""
    came = iter([{"type": "http.request", "body": json.dumps(body(model, max_tokens=900)).encode()}])
    statuses = []

    async def receive():
        return next(came, {"type": "http.disconnect"})

    async def send(message):
        statuses.append(message.get("status"))

    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": [], "query_string": b""}
    asyncio.run(application(model)(scope, receive, send))
    assert 200 not in statuses
    assert texts(sent(model, body(model)))  # and the next is answered


def test_a_model_without_a_chat_template_is_refused(tmp_path):
    for folder in (tiny_gguf(tmp_path / "file", template=None), tiny_llama(tmp_path / "folder")):
        with pytest.raises(ConfigError) as refused:
            ChatModel(str(folder))
        assert refused.value.expected == "a chat template"
