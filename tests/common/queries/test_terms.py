import re

from hypothesis import given
from hypothesis import strategies as st

from common.queries.terms import READ_CHARACTERS, READ_WORDS, Extractor, words


def _naive(terms, text, k):
    """The definition: at each word the longest of all terms, by comparing lists of words."""
    split = [list(words(term)) for term in terms]
    text_words, matches, start = list(words(text)), [], 0
    while start < len(text_words):
        matching = [
            position for position, term in enumerate(split) if term and text_words[start : start + len(term)] == term
        ]
        if not matching:
            start += 1
            continue
        best = max(matching, key=lambda position: (len(split[position]), -position))
        if best not in matches:
            matches.append(best)
        start += len(split[best])
    return tuple(matches[:k])


_WORDS = st.sampled_from(["a", "B", "b", "c-d", "d", "É", "é", "..", "1", "ß", "SS"])
_TEXT = st.lists(_WORDS, max_size=14).map(" ".join)


@given(st.lists(st.lists(_WORDS, max_size=4).map(" ".join), max_size=12), _TEXT, st.integers(0, 5))
def test_equals_the_definition(terms, text, k):
    extractor = Extractor(terms)
    assert extractor.first(text, k) == _naive(terms, text, k)
    assert extractor.first(text, k) == extractor.first(text, 10**6)[:k]


@given(st.lists(st.text(max_size=6), max_size=6), st.text(max_size=30))
def test_equals_the_definition_for_any_characters(terms, text):
    assert Extractor(terms).first(text, 10**6) == _naive(terms, text, 10**6)


@given(st.text())
def test_a_term_finds_itself(term):
    assert Extractor([term]).first(term, 1) == ((0,) if list(words(term)) else ())


def test_words_are_runs_of_letters_and_digits_case_folded():
    assert list(words("Type-2 diabetes, (T2D)_ Straße!")) == ["type", "2", "diabetes", "t2d", "strasse"]
    assert list(words("ﬁbrosis ｆｕｌｌ")) == ["fibrosis", "full"]
    assert list(words("cafe\u0301")) == list(words("CAFÉ"))
    assert list(words(" .,;_-\n")) == []


def test_leftmost_longest_and_on_behind_the_match():
    terms = ["heart", "heart failure", "failure to thrive", "thrive", "acute heart failure syndrome"]
    extractor = Extractor(terms)
    # "heart failure" is taken whole, so "failure to thrive" does not begin within it.
    assert extractor.first("Heart-failure to thrive", 9) == (1, 3)
    # A longer term that breaks off leaves the shorter one.
    assert extractor.first("acute heart failure: heart", 9) == (1, 0)
    assert extractor.first("acute heart failure syndrome", 9) == (4,)


def test_first_distinct_terms_in_order_of_appearance():
    extractor = Extractor(["a", "b", "c"])
    assert extractor.first("c c b c a", 2) == (2, 1)
    assert extractor.first("c c b c a", 3) == (2, 1, 0)
    assert extractor.first("x", 3) == ()
    assert extractor.first("", 3) == ()
    assert extractor.first("a", 0) == ()


def test_of_terms_with_the_same_words_the_first_is_found():
    assert Extractor(["+", "Non-small cell", "non small CELL"]).first("NON SMALL, cell +", 5) == (1,)
    assert Extractor([]).first("anything", 5) == ()


def test_a_term_of_very_many_words_costs_no_more_than_its_words():
    # As strings, its prefixes would take gigabytes.
    extractor = Extractor([" ".join("ab"[i % 7 == 3] for i in range(50_000))])
    assert len(extractor._next) == 50_000
    assert re.fullmatch(r"\(\)", repr(extractor.first("a a a", 1)))


def test_of_a_long_text_only_the_beginning_is_read():
    """Otherwise the time of an answer would tell how long the records are."""
    extractor = Extractor(["early", "late"])
    assert extractor.first(" ".join(["early", *["and"] * (READ_WORDS - 2), "late"]), 2) == (0, 1)
    assert extractor.first(" ".join(["early", *["and"] * (READ_WORDS - 1), "late"]), 2) == (0,)
    assert extractor.first("early" + " " * READ_CHARACTERS + "late", 2) == (0,)
