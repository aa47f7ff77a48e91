from functools import partial

import pytest

from common.errors import ConfigError
from common.llm.cache import Cached
from common.llm.embedded import Embedded
from server.models import providers


class Remote:
    def __init__(self, *, name, model="x"):
        self.name, self.identity = name, f"remote/{model}"


MODELS = {"here": partial(Embedded, share=0.5), "there": partial(Remote, model="y")}


def build(texts=("A public text.", "Another one."), **changes):
    asked = []

    def public_texts():
        asked.append(1)
        return list(texts)

    settings = {"use": None, "encoder": None, "experiment_seed": 3, "replies": None}
    return providers(MODELS, public_texts=public_texts, **(settings | changes)), asked


def test_all_models_are_built_by_name_with_their_settings():
    built, asked = build()
    assert list(built) == ["here", "there"]
    assert built["here"].identity.startswith("embedded/here/0.5/")
    assert built["there"].identity == "remote/y"
    assert len(asked) == 1


def test_public_text_is_read_for_models_that_learn_from_it_only():
    built, asked = build(use=["there"])
    assert list(built) == ["there"]
    assert not asked


def test_the_seed_is_part_of_an_embedded_model():
    assert build()[0]["here"].identity != build(experiment_seed=4)[0]["here"].identity


def test_with_a_folder_each_model_answers_from_its_cache(tmp_path):
    built, _ = build(replies=tmp_path / "replies.db")
    assert all(isinstance(provider, Cached) for provider in built.values())


@pytest.mark.parametrize(("use", "got"), [(["nobody"], "nobody"), (["here", "nobody"], "nobody"), ([], "none")])
def test_an_unknown_name_or_none_is_refused(use, got):
    with pytest.raises(ConfigError, match=rf"llm\.use; expected some of here, there; got .*{got}"):
        build(use=use)
