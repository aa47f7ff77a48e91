"""`llm=server` against our server and two that nobody here wrote: what they answer, and a run that they leave.

The models are tiny.
"""

import asyncio
import json

import openai as sdk
import pytest

from common.errors import ProviderError
from server.llm.base import Request
from server.llm.remote import openai
from server.llm.remote.chat import RemoteSettings
from server.llm.remote.retry import failure_of
from tests.support import serving
from tests.support.provider_contract import requests
from tests.support.runs import labelled, lines, read, resume, tiny
from tests.support.tiny_gguf import tiny_gguf
from tests.support.tiny_models import tiny_llama, tiny_writer

pytestmark = pytest.mark.slow

KINDS = ("caucus", "transformers", "llama.cpp")
SENTENCES = tuple(
    f"the {what} by the {where} was {how} today"
    for what in ("harbour", "lantern", "kettle", "forest", "meadow")
    for where in ("door", "road", "river", "wall")
    for how in ("cold", "bright", "quiet")
)
CONTEXT = 4096
SYSTEM, USER = "You write.", "Write of my card."


def sampling(folder):
    """As a conversion leaves a folder: transformers' server samples only where the model says so."""
    file = folder / "generation_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"do_sample": True}))
    return folder


@pytest.fixture(scope="module", params=KINDS)
def served(request, tmp_path_factory):
    if why := serving.missing(request.param):
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("served")
    made = {
        "caucus": lambda: tiny_gguf(folder, context=CONTEXT),
        "transformers": lambda: sampling(tiny_llama(folder / "model", chat=True, scale=0.1)),
        "llama.cpp": lambda: tiny_gguf(folder, context=CONTEXT),
    }
    server = serving.Served(request.param, made[request.param](), folder / "log.txt", context=CONTEXT)
    try:
        yield server.up()
    finally:
        server.killed()


def settings(served, **changes):
    fixed = {"name": "own", "model": served.model, "base_url": served.url, "key_variable": None, "max_tokens": 24}
    return fixed | {"retries": 0, "concurrency": 4} | changes


def provider(served, **changes):
    return openai.provider(**settings(served, **changes), length_field="max_tokens", seed=True)


def completions(served, batch, *, system=SYSTEM, user=USER, **changes):
    """Whole completions, one after the other."""
    made = RemoteSettings(**settings(served, **changes))
    chat = openai.ChatCompletions(settings=made, length_field="max_tokens", temperature=True, seed=True)

    async def ask():
        async with chat.client() as client:
            return [await chat.complete(client, system, user, request) for request in batch]

    return asyncio.run(ask())


def test_the_check_passes_and_names_a_wrong_model_where_the_server_has_names(served):
    provider(served).check()
    wrong = provider(served, model="another")
    if served.kind == "llama.cpp":
        wrong.check()  # it has one model, whatever a request calls it
    else:
        said = {"transformers": "400: Server is pinned to .*another", "caucus": "404: .*another"}[served.kind]
        with pytest.raises(ProviderError, match=f"HTTP status {said}"):
            wrong.check()


def test_the_check_finds_a_wrong_address(served):
    if served.kind == "llama.cpp":
        pytest.skip("llama.cpp's server answers without /v1 too")
    with pytest.raises(ProviderError, match="404"):
        provider(served, base_url=served.url.removesuffix("/v1")).check()


def test_a_completion_has_text_tokens_and_the_reason_of_its_end(served):
    (short,) = completions(served, requests(1))
    assert short.text
    assert (short.loss, short.usage.output) == ("truncated", 24)
    (other,) = completions(served, requests(1), user=f"{USER} {USER}")
    assert other.usage.read > short.usage.read > 0


def test_a_prompt_that_does_not_fit_is_one_lost_item(served):
    if served.kind == "transformers":
        pytest.skip("transformers' server reads prompts of any length")
    long = Request(task_kind="note", labels=(("a", "b"),), good=("my card " * CONTEXT,))
    replies = provider(served).generate([*requests(1), long])
    assert [reply.loss for reply in replies] == ["truncated", "too long"]


def test_a_body_that_is_refused_ends_the_run_if_the_server_names_the_parameter(served):
    wrong = {"temperature": "warm"} if served.kind == "llama.cpp" else {"unheard_of": 1}
    messages = [{"role": "user", "content": USER}]
    client = sdk.OpenAI(base_url=served.url, api_key="none", max_retries=0)
    with client, pytest.raises(sdk.APIStatusError) as caught:
        client.chat.completions.create(model=served.model, messages=messages, extra_body=wrong)
    assert failure_of(caught.value, date=0).kind == ("hopeless" if served.kind == "caucus" else "failed")


@pytest.mark.parametrize("kind", ["caucus", "transformers"])
def test_a_server_that_is_killed_in_mid_run_and_started_again_is_paid_once(kind, tmp_path, monkeypatch):
    model = sampling(tiny_writer(tmp_path / "model", SENTENCES, chat=True))
    server = serving.Served(kind, model, tmp_path / "log.txt")
    section = "llm.models.own"
    run = [
        *labelled(tmp_path / "data"),
        "method=wasp",
        "method.samples=24",
        "method.rounds=3",
        "method.top=3",
        "method.shots=2",
        "method.texts_per_request=2",
        "llm=server",
        f"{section}.base_url={server.url}",
        f"{section}.model={server.model}",
        f"{section}.max_tokens=100",
        f"+{section}.retries=1",
        f"{section}.concurrency=2",
    ]
    kept = serving.kill_after(5, server, monkeypatch)
    try:
        server.up()
        folder = tmp_path / "run"
        with pytest.raises(ProviderError, match=r"own does not answer.*APIConnectionError"):
            tiny(folder, *run)
        assert read(folder, "run.json")["status"] == "partial"
        answered = len(kept)
        assert 5 <= answered <= 6
        server.up()
        resume(folder)
    finally:
        server.killed()
    assert read(folder, "run.json")["status"] == "complete"
    assert lines(folder, "synthetic.jsonl")
    keys = [row[1] for row in kept]
    unusable = sum(not row[2].texts for row in kept[:answered])  # and so asked for again
    assert len(set(keys)) > answered - unusable
    assert len(keys) - len(set(keys)) <= unusable
    paid = read(folder, "metrics.json")["paid"]["own"]["replies"]
    assert paid == len(keys) + (2 if kind == "transformers" else 0)  # and one word for each check
    assert server.answered() <= paid + 2  # at most, both requests that were under way had been answered too
