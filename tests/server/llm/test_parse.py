import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.llm.parse import TEXT_FIELDS, parse


@pytest.mark.parametrize(
    ("completion", "n", "texts"),
    [
        ('["one", "two", "cut o', 3, ("one", "two")),
        ('["one", "two", "three"]', 2, ("one", "two")),
        ('["one", "One.", "", "..."]', 4, ("one", "One.")),
        ("I am sorry, I would rather not write that.", 2, ()),
        ("seen [1] before", 2, ()),
        ("", 2, ()),
        ("[]", 2, ()),
        ('[{"type": "request", "content": "one"}, {"topic": "x", "asks": "two words"}]', 2, ("one", "two words")),
        ("[1, 2]", 2, ()),
    ],
)
def test_parse(completion, n, texts):
    assert parse(completion, n) == texts


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        ("plain text", "plain text"),
        ('two lines\n\nwith [brackets]: ["x"]', 'two lines\n\nwith [brackets]: ["x"]'),
        ("- a note\n- in points", "- a note\n- in points"),
        ("```\nfenced\n```", "fenced"),
        ('"quoted \\"inside\\""', 'quoted "inside"'),
        ('"Yes," she said, "no."', '"Yes," she said, "no."'),
        ('"cut o', "cut o"),
        ('["one", "two"]', "one"),
        ('Here you are:\n["one", "cut o', "one"),
        ('{"texts": ["one", "two"]}', "one"),
        ("<think>cut o", None),
        ('Sure, here it is:\n\n"one"', "one"),
        ('Sure, here it is:\n{"message": "one"}', "one"),
        ('It said:\n"one" and more', 'It said:\n"one" and more'),
        ('[["one"]]', "one"),
        ("[]", None),
        (" \n", None),
        ("['one', 'two']", "one"),
        ("[1] Patient seen.", "[1] Patient seen."),
        ("[Name] called.", "[Name] called."),
        ('{"id": 3}', None),
        ('"[\\"one\\", \\"two\\"]"', "one"),
        ("He fell. [1]\n\nSeen [2].", "He fell. [1]\n\nSeen [2]."),
    ],
)
def test_parse_one_text(completion, text):
    assert parse(completion, 1) == (() if text is None else (text,))


@pytest.mark.parametrize("field", [*TEXT_FIELDS, "Message", "anything"])
@pytest.mark.parametrize("others", [{}, {"type": "a"}, {"id": 3, "tags": ["a longer text"]}])
@pytest.mark.parametrize("first", [True, False])
def test_the_text_of_an_object_is_found_beside_any_other_field(field, others, first):
    fields = {field: "one text"} | others if first else others | {field: "one text"}
    assert parse(json.dumps(fields), 1) == parse(json.dumps([fields]), 3) == ("one text",)


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
        ("night sweats", 1, ("night sweats",)),
        ('"night sweats"', 1, ("night sweats",)),
        ("I am sorry, I would rather not do that.", 1, ()),
        ("I would rather not do that", 3, ()),
        ("I am sorry.\nI would rather not.", 3, ()),
        ("", 3, ()),
        ("[1, 2]", 3, ()),
        ("[" + '{"a":' * 100_000, 3, ()),
    ],
)
def test_parse_phrases(completion, n, phrases):
    assert parse(completion, n, phrases=True) == phrases


def test_a_text_or_phrase_that_is_cut_off_is_none():
    assert parse("He fell from the", 1, cut=True) == ()
    assert parse("1. Falls at nig", 1, phrases=True, cut=True) == ()
    assert parse('["He fell.", "She', 2, cut=True) == ("He fell.",)
    assert parse("1. He fell.\n2. She", 2, cut=True) == ("He fell.",)
    assert parse("1. He fell.\n2. She", 2) == ("He fell.", "She")


@pytest.mark.parametrize(
    ("completion", "texts"),
    [
        ("['one', 'two', 'cut o", ("one", "two")),
        ('{"count": 3, "texts": ["one", "two", "cut o', ("one", "two")),
        ('[{"id": 1, "text": "one"}, {"id": 2, "summary": "long", "tags": ["a b"], "text": "cut o', ("one",)),
        ('[["one", "two"], ["cut o', ("one", "two")),
        ('["He said "no" to me", "two"]', ('He said "no" to me', "two")),
        ("[“one”, “two”]", ("one", "two")),
        (r"['caf\xe9', 'a\qb', 'c\'d']", ("café", r"a\qb", "c'd")),
        (r"['a\u12', 'two']", (r"a\u12", "two")),
        ('{"one", "two"}', ("one", "two")),
        ('{"id": "note-7", "label": "late"}', ()),
        ('["note-7", "Text 3", "one"]', ("one",)),
        ('{"title": "a late card"}', ("a late card",)),
        ('{"thought": "a long thought about cards", "x": "one"}', ("one",)),
        (
            '["draft", "x"]\n\nThese are the final ones:\n["one", "two", "three", "four", "five"]',
            ("one", "two", "three"),
        ),
        ('1. one ["x"] and\n2. two', ('one ["x"] and', "two")),
        ("1. one\n   - a\n   - b\n2. two", ("one\n   - a\n   - b", "two")),
        ("1. one\n2. two\n\nLet me know!", ("one", "two")),
        ("[" * 500 + '"one"' + "]" * 500, ()),
        ('[{"a": [' * 400, ()),
        ("- one", ("one",)),
    ],
)
def test_lists_that_are_cut_off_or_have_slips(completion, texts):
    assert parse(completion, 5)[:3] == texts


@pytest.mark.parametrize(
    "piece", ["[", '["', "{", '{"a":', "'", '"a", ', "1. ", "```", "<think>", "</think>", "\n---\n", "\n", " ", "<a>"]
)
def test_the_longest_reply_of_one_piece_is_read(piece):
    for n in 1, 5:
        parse(piece * (30_000 // len(piece)), n)


MARKS = st.sampled_from(
    ["[", "]", "{", "}", '"', "'", ",", ":", "\\", "\n", "1. ", "- ", "```", "<think>", "</think>", "a", " "]
)


@given(st.lists(MARKS, max_size=30).map("".join), st.sampled_from([1, 5]), st.booleans(), st.booleans())
@settings(deadline=None)
def test_any_reply_is_read(completion, n, phrases, cut):
    texts = parse(completion, n, phrases=phrases, cut=cut)
    assert len(texts) <= n
    assert all(isinstance(text, str) for text in texts)
