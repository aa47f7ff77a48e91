from dataclasses import replace

import pytest

from common.domain import Record
from common.errors import ConfigError
from server.domain import Task
from server.evaluation.remote_encoder import RemoteEncoder
from server.llm.base import Reply
from server.llm.builtin.model import BuiltinModel
from simulations.baselines import private_exemplars
from tests.support.runs import labelled, lines, read, tiny

ASKED = ("method=private_exemplars", "+method.rounds=1", "llm.use=[broad]", "evaluation.metrics=[utility_encoder]")
TASK = Task(name="t", kind="note", labels={"a": "first", "b": "second", "c": "third"})


def small(folder, *overrides):
    return tiny(folder / "run", *labelled(folder), *ASKED, "method.samples=20", *overrides)


def test_exemplars_are_records_of_the_label_drawn_by_the_experiment_seed():
    private = [Record(f"{label} {at}", label) for label, count in (("a", 9), ("b", 2)) for at in range(count)]
    exemplars = private_exemplars.random_records(private, TASK, 4, 0)
    assert {label: len(texts) for label, texts in exemplars.items()} == {"a": 4, "b": 2, "c": 0}
    assert all(text.startswith(label) for label, texts in exemplars.items() for text in texts)
    assert exemplars == private_exemplars.random_records(private, TASK, 4, 0)
    assert exemplars != private_exemplars.random_records(private, TASK, 4, 1)


def test_texts_are_written_from_prompts_that_show_records_and_it_says_so_first(tmp_path, monkeypatch):
    asked = []
    answer = BuiltinModel.generate

    def generate(self, requests, **settings):
        if self.name == "narrow":
            return [Reply(texts=(), input_tokens=1, output_tokens=1) for _ in requests]
        asked.extend(requests)
        replies = answer(self, requests, **settings)
        return [replace(reply, prompt=r.good[0], raw=r.good[0]) for r, reply in zip(requests, replies, strict=True)]

    monkeypatch.setattr(BuiltinModel, "generate", generate)
    folder = small(tmp_path, f"reply_cache={tmp_path}/shared.db", "llm.use=[narrow,broad]")
    private = {(row.partition(",")[0], row[-1]) for row in (tmp_path / "train.csv").read_text().splitlines()[1:]}
    assert all(len(request.good) == 4 for request in asked)  # half of 8, as many as WASP shows
    assert {(text, request.label) for request in asked for text in request.good} <= private
    assert len({text for request in asked for text in request.good}) == 16
    assert not any(request.may_be_shown for request in asked)
    assert all("prompts" not in line for line in lines(folder, "rounds.jsonl"))
    texts, metrics = lines(folder, "synthetic.jsonl"), read(folder, "metrics.json")
    assert {(text["label"], text["model"]) for text in texts} == {("a", "broad"), ("b", "broad")}
    assert (len(texts), lines(folder, "rounds.jsonl")[0]["lost"]) == (20, {"narrow": 10, "broad": 0})
    assert metrics["synthetic"]["records"] == len(texts) == lines(folder, "rounds.jsonl")[0]["candidates"]
    assert "encoder's vectors" in metrics["utility_encoder"]["definition"]
    privacy = read(folder, "privacy.json")
    assert next(iter(privacy)) == "statement"
    assert privacy["not_covered"]
    assert privacy["statement"].startswith("Private exemplars:")
    assert {privacy[key] for key in ("epsilon", "planned_epsilon", "released_epsilon", "party_epsilon")} == {"inf"}
    assert (read(folder, "run.json")["status"], read(folder, "run.json")["seconds"] > 0) == ("complete", True)
    page = (folder / "report.html").read_text("utf-8").partition("<body>")[2]
    assert page.index("<strong>Private exemplars:</strong>") < page.index('id="utility')
    # What was made from records is kept from the runs that are protected.
    assert (folder / "state" / "replies.db").exists()
    assert not (tmp_path / "shared.db").exists()


@pytest.mark.slow
def test_attacks_find_in_them_what_was_planted(tmp_path):
    plant = ("federation.canaries=60", "federation.style_site=0", "method.exemplars=40", "method.samples=120")
    plant += ("evaluation.language_model.epochs=1", "evaluation.language_model.width=16")
    measured = read(small(tmp_path, *plant, "evaluation.metrics=[sites,canaries]"), "metrics.json")
    assert measured["sites"]["gain"]["rows"] == 40
    assert measured["sites"]["planted"]["value"] is not None
    canaries = measured["canaries"]
    assert canaries["auc"]["interval"][0] > 0.5
    assert canaries["stated_epsilon"]["value"] == "inf"
    assert measured["canaries"]["simulation_only"]


def test_the_exemplars_alone_can_be_the_training_data(tmp_path):
    folder = small(tmp_path, "method.texts=false", "method.exemplars=3")
    metrics = read(folder, "metrics.json")
    assert metrics["synthetic"] is None
    assert metrics["real_private"]["records"] == metrics["utility_encoder"]["records"] == 6
    assert metrics["utility_encoder"]["simulation_only"]
    assert lines(folder, "synthetic.jsonl") == []


@pytest.mark.parametrize("model", ["encoder", "tfidf"])
@pytest.mark.parametrize("place", ["evaluation.embedding", "embedding"])
@pytest.mark.parametrize("texts", [True, False])
def test_no_endpoint_gets_records_or_what_was_made_of_them(texts, place, model, tmp_path, monkeypatch):
    def refused(*_, **__):
        raise AssertionError("sent")

    monkeypatch.setattr(RemoteEncoder, "encode", refused)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-nobody")
    group = "embedding=openai_compatible" if place == "embedding" else f"+embedding@{place}=openai_compatible"
    with pytest.raises(ConfigError, match="never sent"):
        small(tmp_path, f"evaluation.model={model}", group, f"method.texts={texts}")


def test_records_are_shown_to_no_model_on_another_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(BuiltinModel, "remote", True)
    with pytest.raises(ConfigError, match="got broad"):
        small(tmp_path)
