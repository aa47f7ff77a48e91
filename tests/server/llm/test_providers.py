from functools import partial

import pytest

from common.errors import ConfigError
from server.domain import Example, Task
from server.llm.base import Request
from server.llm.builtin.model import BuiltinModel
from server.llm.cache import Cached
from server.llm.providers import cleaner, providers
from server.llm.spending import Spending
from server.settings.schema import Rules
from tests.support.federations import ENCODER


class Remote:
    remote = True
    declines = frozenset()

    def __init__(self, *, name, model="x", spending=None):
        self.name, self.identity, self.spending = name, f"remote/{model}", spending

    def check(self):
        pass


class Shown(Remote):
    def __init__(self, *, name, public_examples):
        super().__init__(name=name)
        self.examples = public_examples


ACCOUNT = Spending()
MODELS = {"here": partial(BuiltinModel, share=0.5), "there": partial(Remote, model="y")}


def build(texts=("A public text.", "Another one."), **changes):
    reads = []

    def public_texts():
        reads.append(1)
        return list(texts)

    settings = {"encoder": None, "experiment_seed": 3, "spending": ACCOUNT, "folder": None}
    settings |= {"models": MODELS, "public_examples": list} | changes
    return providers(settings.pop("models"), public_texts=public_texts, **settings), reads


def test_all_models_are_built_by_name_with_their_settings():
    built, reads = build()
    assert list(built) == ["here", "there"]
    assert built["here"].identity.startswith("embedded/here/0.5/")
    assert built["here"].identity != build(experiment_seed=4)[0]["here"].identity
    assert built["there"].identity == "remote/y"
    assert built["there"].spending is ACCOUNT
    assert len(reads) == 1


def test_public_texts_and_examples_are_read_once_for_models_that_take_them_only():
    read = []

    def examples():
        read.append(1)
        return [Example(text="one", topic="cards")]

    _, reads = build(models={"there": MODELS["there"]}, public_examples=examples)
    assert (read, reads) == ([], [])
    built, reads = build(models={"a": Shown, "b": Shown}, public_examples=examples)
    assert [model.examples for model in built.values()] == [examples(), examples()]
    assert (len(read), reads) == (3, [])


def test_with_a_folder_each_model_answers_from_its_cache_which_runs_may_share(tmp_path):
    assert all(isinstance(provider, Cached) for provider in build(folder=tmp_path)[0].values())
    request = Request(task_kind="note", labels=(("a", "first"),), label="a")
    shared = tmp_path / "shared.db"
    settings = {"models": {"here": MODELS["here"]}, "encoder": ENCODER, "cache": shared}
    first, second = (build(folder=tmp_path / run, **settings)[0]["here"] for run in ("1", "2"))
    assert first.generate([request]) == second.generate([request])
    assert (first.calls, second.calls) == (1, 0)
    assert shared.exists()


def test_there_is_at_least_one_model():
    with pytest.raises(ConfigError, match=r"^llm\.models;"):
        build(models={})


def test_public_text_says_which_script_is_usual():
    task = Task(name="t", kind="note", labels={"a": "first"})

    def none():
        raise ConfigError("task.public_text", got="none")

    request = Request(task_kind="note", labels=(("a", "first"),))
    for texts, foreign in ((none, 1), (lambda: ["Записки лікаря про хворих"], 0)):
        made = cleaner(Rules(foreign=True), task, texts)
        kept, changed = made.clean(["Хворий скаржиться на біль"], request, run_texts=())
        assert (len(kept), changed["foreign"]) == (1 - foreign, foreign)
    assert cleaner(None, task, none).clean(["1. a"], request, run_texts=()) == (["1. a"], {})
