import hashlib
import json
from itertools import chain

import pytest

from server.domain import Wording
from server.llm.base import Request
from server.llm.render import WORDING, parse, render

LABELS = (("pneumonia", "infected lung"), ("heart failure", "tired heart"))
MODES = {
    "zero-shot": {},
    "attribute": {"attribute": "at night"},
    "contrastive": {"good": ("good one", "good two"), "bad": ("bad one",)},
    "good only": {"good": ("good one",)},
    "paraphrase": {"source": ("the only source",)},
    "blanks": {"source": ("one two three four five six seven eight",), "blanks": 0.5},
    "abstracts": {"abstract": True},
    "from abstract": {"source": ("the only source",), "abstract": True},
    "crossover": {"source": ("first parent", "second parent")},
    "keyphrases": {"must": ("sore calf", "fast pulse")},
    "words": {"words": 55},
    "keyphrases by example": {"must": ("sore calf",), "good": ("shown note",), "good_must": (("shown phrase",),)},
    "wording": {"wording": Wording(writer="a nurse at night", style="no full sentences", label="diagnosis")},
}


def request(label: str | None = "pneumonia", **fields) -> Request:
    return Request(**({"task_kind": "note", "labels": LABELS, "label": label, "n": 3} | fields))


@pytest.mark.parametrize("mode", MODES)
def test_all_that_is_given_is_shown(mode):
    fields = MODES[mode]
    system, user = render(request(**fields))
    exemplars = [
        *fields.get("good", ()),
        *fields.get("bad", ()),
        *fields.get("must", ()),
        *chain(*fields.get("good_must", ())),
        fields.get("attribute", ""),
    ]
    exemplars += fields.get("source", ()) if not fields.get("blanks") else ()
    for text in [*exemplars, "note", "pneumonia", "infected lung", "JSON list of 3 strings"]:
        assert text in user
    assert "tired heart" in system
    assert ("55 words" in user) == (mode == "words")


def test_modes_differ():
    assert len({render(request(**fields)) for fields in MODES.values()}) == len(MODES)


def test_a_label_is_called_what_the_task_calls_it():
    system, user = render(request(**MODES["wording"]))
    assert "Diagnosis of each: pneumonia (infected lung)" in user
    assert "Diagnosis of each is one of: pneumonia (infected lung); heart failure (tired heart)" in system
    assert "Written by: a nurse at night" in system
    assert "no full sentences" in system
    assert "abel" not in system + user


def test_what_requests_of_a_run_share_is_in_the_system_prompt():
    assert len({render(request(label, **fields))[0] for label, _ in LABELS for fields in [{}, {"good": ("x",)}]}) == 1


def test_a_description_that_repeats_the_name_is_left_out():
    system, user = render(request("age_limit", labels=(("age_limit", "age limit"), ("cash", "Cash"))))
    assert "age_limit." in user
    assert "age_limit; cash." in system
    assert "(" not in (user + system).partition("Label")[2]


@pytest.mark.parametrize("label", ["pneumonia", None])
def test_subtopics_are_asked_for_as_a_list_of_phrases(label):
    system, user = render(request(label, phrases=True, n=50, attribute="at night"))
    assert "50 different subtopics" in user
    assert "JSON list of 50 strings, one phrase in each" in user
    assert "at night" in user
    assert ("pneumonia (infected lung)" in user) == ("tired heart" in system) == (label is not None)


def test_examples_come_with_their_own_keyphrases_and_before_the_new_ones():
    user = render(request(None, must=("sore calf",), good=("one", "two"), good_must=(("p", "q"), ("r",))))[1]
    steps = ["Example 1:\nKeyphrases: p; q\nNote:\none", "Example 2:\nKeyphrases: r\nNote:\ntwo", "sore calf"]
    places = [user.index(step) for step in steps]
    assert places == sorted(places)


def test_contrast_comes_in_order():
    user = render(request(**MODES["contrastive"]))[1]
    steps = ["bad one", "good one", "sets the strong examples apart", "halfway", "Keep to the label", "Vary", "JSON"]
    places = [user.index(step) for step in steps]
    assert places == sorted(places)


def test_no_label_no_mention():
    prompt = "".join(render(request(None, must=("sore calf",))))
    assert "pneumonia" not in prompt
    assert "Label" not in prompt


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_blanks_hide_their_share(share):
    words = [f"w{number}x" for number in range(40)]
    user = render(request(source=(" ".join(words),), blanks=share, seed=5))[1]
    kept = sum(f"{word} " in f"{user} ".replace("\n", " ") for word in words)
    assert abs(kept - 40 * (1 - share)) <= 1


def test_the_wording_and_its_number_change_together():
    # Cached replies belong to a wording: after a change of prompts raise WORDING, then put the new digest here.
    prompts = "\x1e".join("\x1f".join(render(request(**fields))) for fields in [*MODES.values(), {"phrases": True}])
    assert (WORDING, hashlib.sha256(prompts.encode()).hexdigest()[:16]) == (3, "97117e4c4aa9a58d")


@pytest.mark.parametrize(
    ("completion", "n", "texts"),
    [
        ('["one", "two"]', 2, ("one", "two")),
        ('```json\n["one",\n "two"]\n```', 2, ("one", "two")),
        ('Here you are:\n["one", "two"] Hope this helps!', 2, ("one", "two")),
        ('[{"text": "one"}, {"text": "two"}]', 2, ("one", "two")),
        ('["one", "two", "cut o', 3, ("one", "two")),
        ('["a line\nbreak", "b"]', 2, ("a line\nbreak", "b")),
        ('["one", "two", "three"]', 2, ("one", "two")),
        ('["one", "One.", "", "..."]', 4, ("one", "One.")),
        ("1. one\n2. two\n3) three", 3, ("one", "two", "three")),
        ("Sure, here they are:\n\n- one\n- two", 2, ("one", "two")),
        ("I am sorry, I would rather not write that.", 1, ()),
        ("seen [1] before", 1, ()),
        ("", 2, ()),
        ("[]", 2, ()),
        ('[["nested"]]', 2, ()),
        ("[1, 2]", 2, ()),
    ],
)
def test_parse(completion, n, texts):
    assert parse(completion, n) == texts


@pytest.mark.parametrize(
    ("completion", "n", "phrases"),
    [
        ('["night sweats", "dry cough."]', 2, ("night sweats", "dry cough")),
        ('{"subtopics": ["night sweats", "dry cough"]}', 9, ("night sweats", "dry cough")),
        ('[{"area": "lung", "subtopics": ["night sweats", "dry cough"]}]', 9, ("night sweats", "dry cough")),
        ('[{"subtopic": "night sweats"}, {"subtopic": 3}]', 9, ("night sweats",)),
        ('[{"subtopics": []}]', 9, ()),
        ('["night sweats", "cut o', 3, ("night sweats",)),
        ("1. night sweats\n2. dry cough,", 3, ("night sweats", "dry cough")),
        ("Here you are:\n\nnight sweats\ndry cough\n", 3, ("night sweats", "dry cough")),
        ("night sweats\ndry cough\nDry Cough", 2, ("night sweats", "dry cough")),
        ('["a phrase that goes on and on and on and on", "short"]', 2, ("short",)),
        ("I would rather not do that", 3, ()),
        ("I am sorry.\nI would rather not.", 3, ()),
        ("", 3, ()),
        ("[1, 2]", 3, ()),
        ("[" + '{"a":' * 100_000, 3, ()),
    ],
)
def test_parse_phrases(completion, n, phrases):
    assert parse(completion, n, phrases=True) == phrases


def test_round_trip_of_awkward_texts():
    texts = ("line\nbreak", 'quo"te', "[bracket]", "naïve – 38.5 °C", "1. not a list")
    assert parse(json.dumps(texts), 5) == texts
