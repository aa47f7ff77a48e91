from dataclasses import replace
from pathlib import Path

import pytest

from common.domain import UNLABELLED
from common.errors import ConfigError
from server.domain import Example, Wording
from server.llm.completion import STOP, Completion, opening_words, with_topics
from server.llm.marks import Marks
from server.spans import Span
from tests.support.provider_contract import OTHER, REQUESTS, SOURCE, requests
from tests.support.screens import assert_accepted, under_headings

PUBLIC = [Example(text=f"A public text {'word ' * i}of number {i}.", topic=f"topic {i % 5}") for i in range(40)]
KIND, ASKED = "Customer's question", 'Customer\'s question, about "late card (a card that has not come)": "'


def prompt(fields=None, *, public=PUBLIC, seed=0, **settings):
    fields = {"public": public} | (fields or {})
    public = fields.pop("public")
    request = requests(seed + 1, **fields)[seed]
    return Completion(**settings).beginning(request, public).prompt


MARKED = [replace(example, spans=(Span(start=0, end=1, type="drug"),)) for example in PUBLIC[:6]]
SAID = [Example(text='She said "no" to me.', topic='a "refusal"')]
BARE = {"labels": ((UNLABELLED, "question"),), "label": None}
MARKS = Marks(types=(("drug", "name of a medicine"), ("dose", "an amount")))
PROMPTS = {
    **{name: fields for name, fields in REQUESTS.items() if "must" not in fields},
    "attribute and wording": {
        "attribute": "in a hurry",
        "wording": Wording(writer="a customer", style="short", label="problem"),
    },
    "quotation marks": {
        "labels": (("late_card", 'a "late"\ncard'), ("lost", "")),
        "label": "late_card",
        "public": SAID,
    },
    "no label": {"label": None, "public": []},
    "no labels": BARE,
    "no labels, and an attribute": BARE | {"attribute": "a stolen card"},
    "marks": {"marks": MARKS, "public": MARKED},
    "marks that no public text has": {"marks": MARKS},
}


def test_prompts_of_each_kind_are_those_accepted():
    screen = under_headings({name: [prompt(dict(fields))] for name, fields in PROMPTS.items()})
    assert_accepted(screen, Path(__file__).parent / "screens" / "completions.txt")


def test_the_seed_draws_the_public_texts():
    assert prompt() == prompt() != prompt(seed=1)


def test_public_texts_of_the_tasks_own_labels_are_left_out_and_those_without_topic_name_none():
    examples = [Example(text="My card is late.", topic="Late card")]
    assert "My card is late." not in prompt(public=examples)
    plain = [Example(text="Nobody knows what this is about.")]
    assert prompt(public=plain) == f'{KIND}: "Nobody knows what this is about."\n{ASKED}'
    assert prompt(public=[]) == ASKED


def test_a_section_is_shown_public_sections_under_its_own_heading_or_else_texts_of_other_topics():
    asked, own = {"before": "", "label": "late card"}, Example(text="My card is late.", topic="Late card")
    shown = prompt(asked, public=[*PUBLIC, own])
    assert shown.count(f'{ASKED}My card is late."\n') == 1
    assert "public" not in shown
    assert "public" in prompt(asked)


@pytest.mark.parametrize(("heading", "topic"), [("Vital_signs", "vital_SIGNS"), ("Straße", "STRASSE"), ("A  b", "a b")])
def test_a_heading_and_a_public_text_s_topic_are_compared_as_the_parser_compares_headings(heading, topic):
    labels, own = ((heading, "x"), ("other", "y")), Example(text="My own words.", topic=topic)
    shown, of_another = (
        prompt({"before": "", "label": label, "labels": labels}, public=[*PUBLIC, own]) for label in (heading, "other")
    )
    assert (own.text in shown, "public" in shown) == (True, False)
    assert (own.text in of_another, of_another.count("public")) == (False, 4)


def test_public_texts_without_topics_get_their_two_longest_words_as_one():
    public = [Example(text="Card, my card is delayed!"), Example(text="12"), Example(text="x", topic="late card")]
    assert [example.topic for example in with_topics(public)] == ["card delayed", "", "late card"]


def test_of_many_exemplars_each_prompt_shows_a_random_few_and_at_least_one():
    many = {"good": tuple(f"exemplar number {i}" for i in range(8))}
    prompts = [prompt(many, seed=seed, examples=3) for seed in range(20)]
    assert all(shown.count("exemplar") == 3 for shown in prompts)
    assert len(set(prompts)) > 10
    assert all(any(text in shown for shown in prompts) for text in many["good"])
    assert prompt({"source": (SOURCE, OTHER)}, examples=0).count(KIND) == 3
    assert prompt({"good": (SOURCE, OTHER)}, examples=0).count(KIND) == 2
    assert prompt(examples=0) == ASKED
    for wrong in ({"examples": -1}, {"temperature": 3}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            Completion(**wrong)


def test_blanks_keep_the_beginning_of_the_source():
    (request,) = requests(1, source=(SOURCE,), blanks=0.5)
    beginning = Completion().beginning(request, [])
    assert opening_words(request) == "Where is my card? I"
    assert beginning.prompt.endswith(f"\n{ASKED}Where is my card? I")
    assert Completion().read(' need it now."', request, whole=True) == "Where is my card? I need it now."
    assert Completion().read('"', request, whole=True) is None
    (all_of_it,) = requests(1, source=(SOURCE,), blanks=1.0)
    assert opening_words(all_of_it) == ""


def test_a_requested_length_prefers_public_texts_of_that_length():
    short = Completion().beginning(requests(1, words=3)[0], PUBLIC)
    long = Completion().beginning(requests(1, words=40)[0], PUBLIC)
    assert short.longest < long.longest
    assert long.longest > 25


def test_examples_that_are_much_longer_than_requested_are_cut_after_a_sentence():
    long = "One two three four five. Six seven eight nine ten. Eleven twelve."
    assert prompt({"good": (long,), "words": 4}) == f'{ASKED}One two three four five."\n{ASKED}'
    assert prompt({"good": (long,), "words": 1}) == f'{ASKED}One two"\n{ASKED}'
    assert long in prompt({"good": (long,), "words": 6})
    assert long in prompt({"good": (long,)})


def test_a_text_ends_with_its_line_or_if_it_was_cut_off_with_its_last_sentence():
    read, (request,) = Completion().read, requests(1)
    assert read(" First line.\nSecond line.", request, whole=True) is None  # two words
    assert read("A whole first line.\nAnd more", request, whole=True) == "A whole first line."
    assert read(" A first sentence. And then it", request, whole=False) == "A first sentence."
    assert read(" no sentence ends here at all", request, whole=False) is None
    assert prompt({"good": ("First line.\nSecond line.",)}) == f'{ASKED}First line. Second line."\n{ASKED}'


@pytest.mark.parametrize("fields", [fields for fields in REQUESTS.values() if "must" not in fields])
def test_a_completion_is_read_up_to_the_end_of_its_text(fields):
    completion, (request,) = Completion(), requests(1, **fields)
    assert completion.beginning(request, PUBLIC).prompt.endswith(f': "{opening_words(request)}')
    for after in (
        "",
        STOP,
        f"{STOP}\nmore of the list",
        *(f"{end}the next line" for end in "\n\r\x0b\x0c\x85\u2028\u2029"),
    ):
        text = completion.read(f" need it now{after}", request, whole=True)
        assert text == f"{opening_words(request)} need it now".strip()
    assert completion.read(STOP, request, whole=True) is None


def test_a_subtopic_may_have_one_word():
    (request,) = requests(1, phrases=True)
    assert Completion().read('delay"\nother', request, whole=True) == "delay"
    assert Completion().read(' "\nother', request, whole=True) is None
