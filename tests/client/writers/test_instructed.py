"""A model that follows instructions: how it is asked, what is kept of its answers, and what it refuses."""

import numpy as np
import pytest

from client.records import embed_records
from client.writers import instructed
from client.writers.abstracted_seeds import Seeds
from client.writers.instructed import ABSTRACT, REWRITE, Instructed
from client.writers.rewriting import Rewriting
from client.writers.sentiment import Vader
from common.domain import Record
from common.errors import ConfigError
from common.plan.planned import PlannedQuery
from common.queries.texts import AbstractedSeedsSpec, RewrittenSpec
from tests.support.federations import ENCODER, LABELS
from tests.support.tiny_models import tiny_llama, tiny_writer

SAID = ["the patient slept well .", "he has no pain ."]
NOTE = "fever and cough since monday"


def model(folder, *, instruction="shorten", chat=True, **settings):
    return Instructed(str(tiny_writer(folder / "model", SAID, chat=chat)), instruction=instruction, **settings)


def write(made, text=NOTE, count=3, *, seed=0):
    return made.write(text, count, tone=0, sampled=True, rng=np.random.default_rng(seed))


def asked(made, monkeypatch):
    """The prompts that its tokenizer reads from here on."""
    seen, tokenizer = [], type(made._tokenizer)
    call = tokenizer.__call__

    def read(self, text, **how):
        seen.append((text, how["add_special_tokens"]))
        return call(self, text, **how)

    monkeypatch.setattr(tokenizer, "__call__", read)
    return seen


def test_the_instruction_is_the_systems_and_the_text_the_users(tmp_path, monkeypatch):
    made = model(tmp_path)
    made._tokenizer.chat_template = "{% for said in messages %}<{{ said['role'] }}>{{ said['content'] }}{% endfor %}"
    seen = asked(made, monkeypatch)
    write(made)
    assert seen == [(f"<system>shorten<user>{NOTE}", False)]


def test_a_template_without_a_system_has_both_in_the_users_turn_and_no_template_a_plain_prompt(tmp_path, monkeypatch):
    made = model(tmp_path)
    made._tokenizer.chat_template = (
        "{% for said in messages %}{% if said['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        "{{ said['content'] }}{% endfor %}"
    )
    seen = asked(made, monkeypatch)
    write(made)
    made._tokenizer.chat_template = None
    write(made)
    assert seen == [(f"shorten\n\n{NOTE}", False), (f"shorten\n\n{NOTE}\n\nNew text:\n", True)]


def test_a_template_that_takes_no_message_is_refused_when_the_model_is_loaded(tmp_path):
    folder = tiny_writer(tmp_path / "model", SAID, chat=True)
    (folder / "chat_template.jinja").write_text("{{ raise_exception('nothing') }}")
    with pytest.raises(ConfigError, match="name_or_path"):
        Instructed(str(folder), instruction="shorten")


def test_answers_are_drawn_as_asked_and_torchs_own_generator_stays_as_it_was(tmp_path):
    import torch

    made = Instructed(str(tiny_llama(tmp_path / "model", chat=True)), instruction="x", longest=8, temperature=1.0)
    answers = []
    made._tokenizer.batch_decode = lambda rows, **_: answers.append(rows.tolist()) or ["one."] * len(rows)
    before = torch.random.get_rng_state()
    for seed in (0, 1, 0):
        assert write(made, count=4, seed=seed) == ["one."]
    assert torch.equal(torch.random.get_rng_state(), before)
    assert answers[0] == answers[2] != answers[1]
    assert len({tuple(row) for row in answers[0]}) > 1
    certain = Instructed(str(tmp_path / "model"), instruction="x", longest=8, temperature=1.0, top_p=0.01)
    certain._tokenizer.batch_decode = made._tokenizer.batch_decode
    write(certain, count=4)
    assert len({tuple(row) for row in answers[-1]}) == 1


def test_of_what_is_cut_off_whole_sentences_are_left(tmp_path, monkeypatch):
    made = model(tmp_path, longest=5)
    decoded = ["He slept. She came by and", " He slept. ", "without an end"]
    monkeypatch.setattr(type(made._tokenizer), "batch_decode", lambda *_, **__: decoded)
    made._model.generate = lambda ids, **_: rows(ids, [[5] * 5, [5] * 3 + [1] * 2, [5] * 5])
    assert write(made) == ["He slept."]
    # Without a token to spare none of them was cut off.
    made._model.generate = lambda ids, **_: rows(ids, [[5] * 4] * 3)
    assert write(made) == ["He slept. She came by and", "He slept.", "without an end"]


def rows(ids, answers):
    import torch

    return torch.cat([ids.repeat(len(answers), 1), torch.tensor(answers)], dim=1)


@pytest.mark.parametrize("text", ["", " . ", "[DATE] [PERSON]"])
def test_of_a_text_that_says_nothing_no_model_is_asked(text, tmp_path, monkeypatch):
    made = model(tmp_path)
    seen = asked(made, monkeypatch)
    assert write(made, text) == []
    assert seen == []


def test_what_does_not_fit_into_a_models_context_is_not_written(tmp_path):
    made = Instructed(str(tiny_llama(tmp_path / "model", context=64)), instruction="shorten", longest=16)
    assert write(made, "pain " * 20) == []


# As a party's writer


def test_an_instructed_model_abstracts_and_rewrites_records_on_a_network_of_llamas_kind(tmp_path, monkeypatch):
    folder = str(tiny_llama(tmp_path / "model", chat=True))
    monkeypatch.setattr(instructed, "whole", lambda *_, **__: "a fever .")
    records = embed_records([Record(f"{NOTE} and {more}", LABELS[0]) for more in ("pain", "ache")], ENCODER).for_plan(
        LABELS
    )
    seeds = Seeds(abstraction=Instructed(folder, instruction=ABSTRACT, longest=8), sentiment=Vader(), oversampled=2)
    query = PlannedQuery(
        name="x", spec=AbstractedSeedsSpec(choices=2, candidates=2), mechanism="gaussian max", scale=0.0
    )
    seeds.check(query, LABELS)
    assert seeds.write(query, records, labels=LABELS, encoder=ENCODER, key=bytes(32)) == [(0, "a fever .")] * 2
    rewriting = Rewriting(rewriter=Instructed(folder, instruction=REWRITE, longest=8), nearest=0)
    query = PlannedQuery(name="x", spec=RewrittenSpec(texts=2), mechanism="none")
    rewriting.check(query, LABELS)
    assert rewriting.write(query, records, labels=LABELS, encoder=ENCODER, key=bytes(32)) == [(0, "a fever .")] * 2
