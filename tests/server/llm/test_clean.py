import pytest

from server.llm.base import Request
from server.llm.clean import Cleaner, Rules

LABELS = (("late card", "a card that has not come by post"), ("lost card", "a card that was stolen"))
REQUEST = Request(task_kind="customer's question", labels=LABELS, label="late card", good=("Where is my card?",))
OFF = Cleaner(Rules.none())


def alone(rule):
    """The one rule on."""
    return Cleaner(Rules(**{**dict.fromkeys(Rules.__slots__, False), rule: True}), ["plain English words"])


CASES = [
    ("fences", "```text\nMy card is late.\n```", "My card is late."),
    ("fences", "```\nMy card is late.```", "My card is late."),
    ("prefaces", "Here is a new question:\nMy card is late.", "My card is late."),
    ("prefaces", "Sure! Here are the texts you wanted: My card is late.", "My card is late."),
    ("prefaces", "Certainly.\nMy card is late.", "My card is late."),
    ("headings", "## Question 1\n\nMy card is late.", "My card is late."),
    ("headings", "**Late card**\nMy card is late.", "My card is late."),
    ("numbering", "1. My card is late.", "My card is late."),
    ("numbering", "Example 12: My card is late.", "My card is late."),
    ("numbering", "- My card is late.", "My card is late."),
    ("quotes", '"My card is late."', "My card is late."),
    ("quotes", "“My card is late.”", "My card is late."),
    ("loops", "My card is late. I am cross. I am cross. I am cross. I am", "My card is late. I am cross."),
    ("loops", "cough, cough, cough, cough, cough, cough", "cough,"),
    ("echoes", "a card that has not come by post", None),
    ("echoes", "Answer with the text only.", None),
    ("copies", "where is my card", None),
    ("foreign", "Моя картка ще не прийшла", None),
]


@pytest.mark.parametrize(("rule", "text", "left"), CASES)
def test_each_rule_does_its_work_is_counted_and_can_be_off(rule, text, left):
    kept, changed = alone(rule).clean([text], REQUEST, run_texts=())
    assert kept == ([] if left is None else [left])
    assert changed == {rule: 1}
    assert OFF.clean([text], REQUEST, run_texts=()) == ([text], {})


@pytest.mark.parametrize(
    "text",
    [
        "My card is late.",
        "38.5 degrees since Monday, 2 tablets a day",
        "I said: here is my card: take it",
        '"Yes," she said, "no."',
        "'Tis late.",
        "Here is my card, and it does not work",
        "Sure, I can wait.",
        "no, no, no, I will not wait",
        "chest pain 2/7, chest pain 3/7, chest pain 4/7",
        "BP 120/80, HR 80, BP 120/80, HR 80",
        "not come",
        "#1 complaint is the wait",
        "**Urgent** my card is late",
        '"',
        "The naïve café",
    ],
)
def test_what_is_a_text_stays_as_it_is(text):
    everything = Cleaner(Rules(foreign=True), ["plain English words"])
    assert everything.clean([text], REQUEST, run_texts=()) == ([text], {})


def test_layers_come_off_one_after_the_other():
    text = '```\nHere is one:\n\n1. "My card is late."\n```'
    kept, changed = Cleaner(Rules()).clean([text], REQUEST, run_texts=())
    assert kept == ["My card is late."]
    assert changed == {"fences": 1, "prefaces": 1, "numbering": 1, "quotes": 1}


def test_what_the_run_has_is_not_had_again():
    kept, changed = alone("duplicates").clean(["old", "new", "new", "New"], REQUEST, run_texts={"old"})
    assert kept == ["new", "New"]
    assert changed == {"duplicates": 2}
    assert OFF.clean(["new", "new"], REQUEST, run_texts=())[0] == ["new", "new"]


def test_another_script_is_counted_and_kept_unless_the_rule_is_on():
    texts = ["Моя картка ще не прийшла", "My late card, так", "short я"]
    kept, changed = Cleaner(Rules(), ["plain English words"]).clean(texts, REQUEST, run_texts=())
    assert (kept, changed) == (texts, {"foreign": 1})
    assert Cleaner(Rules(foreign=True), ["слова українською"]).clean(texts[:1], REQUEST, run_texts=()) == (
        texts[:1],
        {},
    )
    assert Cleaner(Rules(foreign=True)).clean(texts, REQUEST, run_texts=()) == (texts, {})


def test_blanks_are_no_texts_and_half_a_surrogate_pair_fits_into_a_file():
    kept, _ = OFF.clean(["  ", "a\ud83d", " b "], REQUEST, run_texts=())
    assert kept == ["a?", "b"]


def test_phrases_are_left_alone():
    phrases = Request(task_kind="note", labels=LABELS, label="late card", phrases=True)
    assert Cleaner(Rules()).clean(["lost card", "lost card"], phrases, run_texts={"lost card"}) == (
        ["lost card"] * 2,
        {},
    )
