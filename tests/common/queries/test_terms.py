import re
import sys
import time
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from common.queries.questions import QUESTIONS, answers
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


def test_a_long_run_without_white_space_is_cut_and_prose_is_normalised_as_a_whole():
    prose = "Nai\u0308ve caf\u00e9s, \u02bcno\u02bc (ﬁbrosis) \u1100\u1161 \u00b4 \u0301 x " * 30
    assert list(words(prose)) == re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", prose.casefold()))
    assert list(words("x" * 33)) == ["x" * 32, "x"]


def _nasty():
    """One character of each kind to casefolding and normalisation, by itself, with white space, and with marks."""
    kinds = {}
    for character in map(chr, range(sys.maxunicode + 1)):
        plain, apart = (len(unicodedata.normalize(form, character.casefold())) for form in ("NFKC", "NFKD"))
        kinds.setdefault(
            (unicodedata.category(character), unicodedata.combining(character) > 0, plain, apart), character
        )
    for character in kinds.values():
        for unit in (character, f"{character} ", f"{character}\u0323\u0301", f"{character}\u0323\u0301 "):
            yield (unit * READ_CHARACTERS)[:READ_CHARACTERS]


def _seconds(read, text, times):
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        read(text)
        taken.append(time.perf_counter() - began)
    return min(taken)


def test_no_text_takes_much_longer_than_prose():
    """Otherwise the time of an answer would tell which characters the records have."""
    extractor, prose = (
        Extractor(["patient"]),
        ("The patient was seen on 12 May with pain and fever. " * 400)[:READ_CHARACTERS],
    )
    texts = list(_nasty())
    for read, most in ((lambda text: extractor.first(text, 9), 40), (lambda text: answers(QUESTIONS, [text]), 40)):
        usual = _seconds(read, prose, 9)
        for text in texts:
            # Once is enough where it is fast; what the machine does at the same time is not measured.
            if _seconds(read, text, 1) > most * usual:
                assert _seconds(read, text, 3) <= most * usual, ascii(text[:4])
