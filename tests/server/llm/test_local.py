import json
import shutil
import sys
from dataclasses import replace

import pytest
import torch

from common.errors import ConfigError, ProviderError
from common.models.fetch import convert_gguf
from server.domain import Example
from server.llm.base import accepted
from server.llm.completion import DECLINED, Completion
from server.llm.engines import openvino
from server.llm.local import Local
from tests.support.engines import sampled
from tests.support.provider_contract import ProviderContract, requests
from tests.support.tiny_gguf import tiny_gguf
from tests.support.tiny_models import tiny_bert, tiny_gpt2, tiny_writer

SENTENCES = (
    "where is my new card",
    "my card is late again",
    "the post lost my new card",
    "is my card in the post",
    "a new card was stolen at work",
    "someone stole my card again",
)


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    folder = tiny_writer(tmp_path_factory.mktemp("writer") / "model", SENTENCES, chat=True)
    return Local(name="writer", model=folder, max_new_tokens=400)


class TestLocal(ProviderContract):
    @pytest.fixture
    def provider(self, writer):
        return writer

    @pytest.fixture
    def effect(self):
        return lambda provider, batch: [provider._ids(request) for request in batch]


@pytest.fixture(scope="module", params=["openvino", "transformers"])
def completing(request, tmp_path_factory):
    """A model that completes a list, by each engine."""
    folder = tiny_gguf(tmp_path_factory.mktemp("gguf")).parent
    convert_gguf(folder)
    public = [Example(text=f"the doctor came on day {i} " * 7, topic="visits") for i in range(9)]
    return Local(
        name="m",
        model=folder,
        engine=request.param,
        completion=Completion(),
        public_examples=public,
        max_new_tokens=120,
    )


class TestCompletion(ProviderContract):
    declines = DECLINED

    @pytest.fixture
    def provider(self, completing):
        return completing

    @pytest.fixture
    def effect(self):
        return lambda provider, batch: [provider._job(accepted(request, provider.declines)) for request in batch]


def test_a_prompt_and_a_seed_decide_a_completion(completing):
    first, other = map(completing._job, requests(2, n=5))
    assert completing._job(requests(1, n=5)[0]) == first
    assert first.seed != other.seed
    # So hot, and without a stop, that no processor's rounding draws the same five long texts for two of these.
    hot = replace(first, temperature=2.0, stop="")
    jobs = [hot, replace(hot, seed=other.seed), replace(hot, ids=other.ids)]
    drawn, again = (sampled(anew(completing)._engine, jobs) for _ in range(2))
    assert drawn == again
    assert drawn[0] not in drawn[1:]
    assert all(len(set(map(tuple, continuations))) > 1 for continuations in drawn)


def anew(model, **changes):
    """The same completing model without what it keeps of prompts that it has read, which may change a text."""
    openvino._pipeline.cache_clear()
    settings = {
        "engine": model._checkpoint.engine,
        "completion": Completion(),
        "public_examples": model._public,
        "max_new_tokens": 120,
    }
    return Local(name="m", model=model._checkpoint.folder, **settings | changes)


def test_the_length_of_a_completion_is_bound_by_the_request_and_by_its_examples(completing):
    def room(**fields):
        return completing._job(requests(1, **fields)[0]).max_new_tokens

    assert room(words=20) == 42
    assert room(words=200) == 120
    assert room(words=1) == 40
    assert room() == 89  # the examples have 42 words
    bare = Local(name="m", model=completing._checkpoint.folder, completion=Completion(), max_new_tokens=60)
    assert bare._job(requests(1)[0]).max_new_tokens == 60


def refused(folder, **settings):
    """What is wrong in the settings of a model that is refused before its weights are loaded."""
    with pytest.raises(ConfigError) as caught:
        Local(name="m", model=folder, **settings)
    return caught.value.what


def test_what_cannot_be_loaded_is_named_before_anything_is_asked(tmp_path, completing, monkeypatch):
    assert refused(tmp_path) == "language model m"
    assert refused(tiny_bert(tmp_path / "bert")) == "model"
    folder = tiny_gpt2(tmp_path / "gpt2")
    assert refused(folder) == "language model m"  # it has no chat template
    assert refused(folder, dtype="float8") == "dtype of m"
    (folder / "tokenizer.json").unlink()
    assert refused(folder, completion=Completion()) == "model"
    chat = tiny_gpt2(tmp_path / "chat", chat=True)
    assert refused(chat, engine="openvin") == "engine of m"
    assert refused(chat, engine="openvino", max_new_tokens=12) == "language model m"
    monkeypatch.setitem(sys.modules, "openvino_genai", None)
    assert refused(completing._checkpoint.folder, engine="openvino", max_new_tokens=12) == "engine of m"


def test_a_gguf_file_alone_is_a_chat_model_of_openvino(tmp_path, monkeypatch):
    file = tiny_gguf(tmp_path / "only", context=900)
    model = Local(name="m", model=file, max_new_tokens=100)
    assert isinstance(model._engine, openvino.OpenVino)
    assert model._longest == 800
    (request,) = requests(1)
    job = model._job(request)
    assert model._checkpoint.tokenizer.decode(job.ids).endswith("<|im_end|>\n<|im_start|>assistant\n")
    (reply,) = model.generate([request])
    assert reply.input_tokens == len(job.ids)
    assert 0 < reply.output_tokens <= 100
    assert Local(name="m", model=file.parent, engine="openvino", max_new_tokens=100).identity == model.identity
    few, more = Local(name="m", model=file, top_p=0.5), Local(name="m", model=file)
    before = few.identity, more.identity
    monkeypatch.setattr("server.llm.local.LIKELIEST", 7)
    again = [Local(name="m", model=file, top_p=top_p).identity for top_p in (0.5, 1.0)]
    assert [new == old for new, old in zip(again, before, strict=True)] == [False, True]


def test_a_gguf_file_of_another_engine_or_without_a_chat_is_refused(tmp_path):
    bare = tiny_gguf(tmp_path / "bare", template=None, context=40_000)
    assert refused(bare, engine="transformers") == "engine of m"
    assert refused(bare) == "language model m"
    assert Local(name="m", model=bare, completion=Completion())._longest == openvino.LONGEST_PROMPT
    bare.write_bytes(bare.read_bytes()[:-5000])
    assert refused(bare.parent) == "GGUF file"


def test_identity_is_of_the_engine_and_of_what_a_completion_shows(completing):
    assert anew(completing).identity == completing.identity
    others = [
        {"completion": None},
        {"completion": Completion(temperature=0.5)},
        {"public_examples": []},
        {"engine": "openvino" if completing._checkpoint.engine == "transformers" else "transformers"},
    ]
    assert len({completing.identity, *(anew(completing, **other).identity for other in others)}) == 5


def test_a_prompt_that_the_context_does_not_hold_is_a_lost_item(tmp_path, caplog):
    folder = tiny_writer(tmp_path / "model", SENTENCES, chat=True, context=260)
    model = Local(name="small", model=folder, max_new_tokens=40)
    short, long = requests(1)[0], requests(1, good=("card " * 200,))[0]
    arrivals = {}
    lost, kept = model.generate([long, short], arrived=arrivals.__setitem__)
    assert kept.texts
    assert (lost.texts, lost.input_tokens, lost.output_tokens, lost.loss) == ((), 0, 0, "too long")
    assert arrivals == {0: lost, 1: kept}
    assert all(fact in caplog.text for fact in ("small: 1 of 2", "220 tokens"))
    assert "card card" not in caplog.text
    assert refused(folder, max_new_tokens=260) == "max_new_tokens of m"


def test_an_answer_that_breaks_off_keeps_its_whole_texts(writer):
    short = Local(name="short", model=writer._checkpoint.folder, max_new_tokens=9)
    replies = short.generate(requests(20, n=6))
    assert "truncated" in {reply.loss for reply in replies}
    assert any(len(reply.texts) == 1 for reply in replies)


def test_the_identity_is_of_weights_tokenizer_and_settings(writer, tmp_path):
    copy = shutil.copytree(writer._checkpoint.folder, tmp_path / "copy")
    same = Local(name="copy", model=copy, max_new_tokens=400, batch_tokens=5)
    assert same.identity == writer.identity
    assert Local(name="copy", model=copy, max_new_tokens=401).identity != writer.identity
    assert Local(name="copy", model=copy, max_new_tokens=400, top_p=0.5).identity != writer.identity
    (copy / "generation_config.json").write_text(json.dumps({"repetition_penalty": 1.5, "eos_token_id": 1}))
    assert Local(name="copy", model=copy, max_new_tokens=400).identity != writer.identity


def test_its_own_type_is_one_that_this_processor_computes_in(tmp_path, monkeypatch):
    folder = tiny_gpt2(tmp_path / "gpt2", chat=True)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"dtype": "bfloat16"}))
    made = []
    for has in (False, True):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda has=has: {"avx512_bf16": has})
        made.append(Local(name="m", model=folder, dtype="auto"))
    assert [model._engine._model.dtype for model in made] == [torch.float32, torch.bfloat16]
    # What they write differs, so a cache of replies has to tell them apart.
    assert made[0].identity != made[1].identity


def test_damaged_weights_and_a_full_memory_are_one_clear_error(writer, tmp_path, monkeypatch):
    copy = shutil.copytree(writer._checkpoint.folder, tmp_path / "copy")
    (copy / "model.safetensors").write_bytes(b"cut off")
    with pytest.raises(ConfigError):
        Local(name="m", model=copy).generate(requests(1))

    def full(*_args, **_kwargs):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(writer._engine._model, "generate", full)
    with pytest.raises(ProviderError, match="batch_tokens"):
        writer.generate(requests(1))


def test_a_template_without_a_system_prompt_and_one_that_fails(tmp_path):
    folder = tiny_writer(tmp_path / "model", SENTENCES, chat=True)
    model = Local(name="m", model=folder)
    no_system = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no') }}{% endif %}"
    picky = no_system + "{{ messages[0]['content'] }} <user>"
    model._checkpoint.tokenizer.chat_template = picky
    assert model.generate(requests(1))[0].texts
    model._checkpoint.tokenizer.chat_template = "{{ raise_exception('no') }}"
    with pytest.raises(ProviderError, match="chat template"):
        model.generate(requests(1))
