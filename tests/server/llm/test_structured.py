"""Structured texts on their way: the prompt, a model's answer, the cleaner, and models that write plain text alone."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from common.errors import ProviderError
from common.rng import experiment
from common.structure import Structure
from server.domain import Task
from server.llm.clean import Cleaner, Rules
from server.llm.parse import parse
from server.llm.requests import (
    abstracts,
    by_example,
    crossover,
    fill_in,
    from_abstract,
    paraphrase,
    subtopics,
    with_keyphrases,
)
from server.llm.structured_fallback import plain, structured
from tests.support.prompts import render
from tests.support.structures import SETTINGS, STRUCTURE, WHOLE

TASK = Task(name="t", kind="triage record", labels={"a": "falls", "b": "burns"}, structure=STRUCTURE)
OTHER = '{"triage": "green", "note": "A burnt hand."}'
BROKEN = "{'triage': 'RED', 'age': 54, 'note': 'He fell.'}"


def zero_shot(texts=2, **fields):
    return by_example(TASK, "a", texts=texts, rng=experiment(0, "test"), **fields)


MADE = {
    "zero-shot": zero_shot(),
    "by example": zero_shot(good=[WHOLE], bad=[OTHER]),
    "paraphrase": paraphrase(TASK, "a", WHOLE, texts=1, rng=experiment(0, "test")),
    "crossover": crossover(TASK, "a", (WHOLE, OTHER), texts=1, rng=experiment(0, "test")),
    "blanks": fill_in(TASK, "a", WHOLE, blanks=0.5, texts=1, rng=experiment(0, "test")),
    "from abstract": from_abstract(TASK, "a", "a fall", texts=1, rng=experiment(0, "test")),
    "keyphrases": with_keyphrases(TASK, ["knee"], texts=1, rng=experiment(0, "test")),
}


@pytest.mark.parametrize("mode", MADE)
def test_each_prompt_for_texts_holds_the_schema_and_asks_for_objects(mode):
    for n, answer in ((1, "that JSON object"), (2, "a JSON list of 2 such objects")):
        _, user = render(replace(MADE[mode], n=n))
        assert STRUCTURE.schema in user
        assert 'field "note" has the text itself' in user
        assert answer in user.split("\n\n")[-1]
        assert "string" not in user.split("\n\n")[-1]


def test_abstracts_and_subtopics_are_plain_texts():
    for request in (
        abstracts(TASK, "a", texts=2, rng=experiment(0, "test")),
        subtopics(TASK, "a", phrases=2, rng=experiment(0, "test")),
    ):
        assert request.structure is None
        assert "JSON list of 2 strings" in render(request)[1]


def test_only_words_of_the_text_field_are_blanked():
    source = json.dumps({"triage": "red", "note": "one two three four five six seven eight"})
    text = render(fill_in(TASK, "a", source, blanks=0.5, texts=1, rng=experiment(0, "test")))[1]
    line = next(line for line in text.splitlines() if line.startswith("{"))
    assert json.loads(line)["triage"] == "red"
    assert json.loads(line)["note"].count("____") in (3, 4, 5)


@pytest.mark.parametrize(
    ("completion", "texts"),
    [
        (f"[{WHOLE}, {OTHER}]", (WHOLE, OTHER)),
        (f"Sure!\n```json\n[{WHOLE},\n{OTHER}]\n```", (WHOLE, OTHER)),
        (f"1. {WHOLE}\n2. {OTHER}", (WHOLE, OTHER)),
        (f'{{"records": [{WHOLE}, {OTHER}]}}', (WHOLE, OTHER)),
        (f"[{BROKEN}, {OTHER}, {OTHER}]", (BROKEN, OTHER)),
        (f'[{WHOLE}, {{"triage": "red", "no', (WHOLE, '{"triage": "red", "no')),
        ("I cannot do that.", ()),
    ],
)
def test_an_answer_is_split_into_objects_good_and_bad(completion, texts):
    assert parse(completion, 2, objects=True) == texts


def test_a_structure_leaves_keys_of_plain_requests_as_they_were():
    bare = Task(name="t", kind="triage record", labels=TASK.labels)
    request = by_example(bare, "a", texts=2, rng=experiment(0, "test"))
    assert "structure" not in json.loads(request.canonical())
    assert request.key("m") != zero_shot().key("m")
    other = Structure.of(SETTINGS | {"text_field": "ward"})
    assert zero_shot().key("m") != of_task(other).key("m")


def of_task(structure):
    task = Task(name="t", kind="triage record", labels=TASK.labels, structure=structure)
    return by_example(task, "a", texts=2, rng=experiment(0, "test"))


@pytest.mark.parametrize("rules", [Rules(), Rules.none()])
def test_the_cleaner_repairs_drops_and_counts(rules):
    texts = [BROKEN, "Only words.", '{"triage": "blue", "note": "x"}', f"Here: {OTHER}"]
    kept, changed = Cleaner(rules).clean(texts, zero_shot(4), run_texts=())
    assert kept == [WHOLE, OTHER]
    assert changed == {
        "structure: notation": 1,
        "structure: value as in the schema": 1,
        "structure: words around the object": 1,
        "no structure: not an object": 1,
        "no structure: unknown value": 1,
    }


def test_a_copied_text_with_other_fields_is_a_copy_and_the_same_text_with_other_fields_no_duplicate():
    again = WHOLE.replace("54", "55")
    kept, changed = Cleaner(Rules()).clean([again], zero_shot(good=[WHOLE]), run_texts=())
    assert (kept, changed) == ([], {"copies": 1})
    kept, changed = Cleaner(Rules()).clean([again, WHOLE], zero_shot(), run_texts={WHOLE})
    assert (kept, changed) == ([again], {"duplicates": 1})


def test_a_model_of_plain_text_is_shown_text_fields():
    request = plain(zero_shot(good=[WHOLE], bad=[OTHER]))
    assert (request.good, request.bad, request.structure) == (("He fell.",), ("A burnt hand.",), None)
    assert plain(request) is request


def test_other_fields_are_drawn_evenly_or_those_of_a_text_that_is_shown():
    fields = [json.loads(text) for text in structured(["x"] * 600, zero_shot(600), "m")]
    shares = Counter(record["triage"] for record in fields)
    assert all(150 < shares[value] < 250 for value in ("red", "yellow", "green"))
    assert {record["admitted"] for record in fields} == {True, False}
    assert all(
        record.keys() == {"triage", "age", "admitted", "note"} for record in fields
    )  # not pain: it has no bounds
    assert len({record["age"] for record in fields}) > 50
    texts = structured(["x"] * 60, zero_shot(60, good=[WHOLE, OTHER], bad=[WHOLE]), "m")
    assert set(texts) == {WHOLE.replace("He fell.", "x"), OTHER.replace("A burnt hand.", "x")}
    assert structured(["x"] * 60, zero_shot(60, good=[WHOLE, OTHER]), "m") == texts
    assert structured(["x"], plain(zero_shot()), "m") == ("x",)


def test_a_required_field_that_nobody_can_draw_is_refused_by_name():
    needed = Structure.of(SETTINGS | {"schema": SETTINGS["schema"] | {"required": ["ward", "pain"]}})
    with pytest.raises(ProviderError, match=r"m writes plain texts alone; .* got pain, ward; at task.structure.schema"):
        structured(["x"], of_task(needed), "m")
