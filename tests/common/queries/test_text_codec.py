"""Texts to coordinates and back, whatever a hospital's records or a hostile party may hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InternalError, ProtocolError
from common.queries import text_codec

SHOWN = st.characters(exclude_categories=["Cc", "Cf"])
TEXTS = st.lists(st.tuples(st.integers(0, 4), st.text(SHOWN, max_size=30)), max_size=6)


@given(TEXTS, st.integers(4, 40), st.sampled_from([np.int64, np.float64]))
def test_texts_come_back_cut_sorted_and_without_blanks(given_texts, longest, dtype):
    answer = text_codec.encode(given_texts, 6, longest)
    assert (answer.shape, answer.dtype) == ((6 * (1 + longest),), np.int64)
    read = text_codec.decode(answer.astype(dtype), 6, longest, labels=5)
    expected = []
    for label, text in given_texts:
        left = text.replace("\0", "").encode("utf-8", "replace").strip()[:longest].decode("utf-8", "ignore").strip()
        expected += [(label, left)] if left else []
    assert sorted(read) == sorted(expected)
    assert text_codec.encode(given_texts[::-1], 6, longest).tolist() == answer.tolist()
    assert text_codec.encode(read, 6, longest).tolist() == answer.tolist()


def test_a_text_is_cut_at_the_end_of_a_character():
    assert text_codec.decode(text_codec.encode([(1, "aé€𝄞")], 1, 6), 1, 6, labels=2) == [(1, "aé€")]
    assert text_codec.decode(text_codec.encode([(1, "aé€𝄞")], 1, 5), 1, 5, labels=2) == [(1, "aé")]


def test_half_a_character_is_no_reason_to_fail():
    assert text_codec.decode(text_codec.encode([(0, "a\ud800b")], 1, 9), 1, 9, labels=1) == [(0, "a?b")]


def test_several_parties_come_one_after_the_other():
    rows = np.array(
        [text_codec.encode([(1, "one")], 2, 5), text_codec.encode([], 2, 5), text_codec.encode([(0, "two")], 2, 5)]
    )
    assert text_codec.decode(rows, 2, 5, labels=2) == [(1, "one"), (0, "two")]


def test_more_texts_than_planned_are_a_bug():
    with pytest.raises(InternalError, match="at most 1; got 2"):
        text_codec.encode([(0, "a"), (0, "b")], 1, 5)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (1, 256),
        (1, -1),
        (1, 0.5),
        (1, float("nan")),
        (1, float("inf")),
        (1, 0),
        (0, 2),
        (0, -1),
        (0, 0.5),
        (0, float("nan")),
        (2, 0xFF),
        (5, 65),
        (4, 0xC3),
    ],
)
def test_what_is_no_text_is_refused_without_a_word_of_it(place, value):
    answer = text_codec.encode([(1, "abc")], 1, 5).astype(np.float64)
    answer[place] = value
    with pytest.raises(ProtocolError, match="texts of an answer") as refused:
        text_codec.decode(answer, 1, 5, labels=2)
    assert "abc" not in str(refused.value)


def test_another_length_is_refused():
    with pytest.raises(ProtocolError, match="12 coordinates"):
        text_codec.decode(np.zeros(11), 2, 5, labels=2)
    with pytest.raises(ProtocolError, match="12 coordinates"):
        text_codec.decode(np.zeros((1, 2, 12)), 2, 5, labels=2)


def test_an_answer_that_is_none_leaves_the_others_readable():
    good, bad = (text_codec.encode([(0, "one")], 2, 5) for _ in range(2))
    bad[0] = 7
    texts, (note,) = text_codec.readable(np.stack([bad, good]), 2, 5, labels=2)
    assert texts == [(0, "one")]
    assert note.startswith("1 of 2 ")
    assert text_codec.readable(np.stack([good, good]), 2, 5, labels=2) == ([(0, "one")] * 2, [])
    with pytest.raises(ProtocolError, match="labels below 2"):
        text_codec.readable(np.stack([bad, bad]), 2, 5, labels=2)


def test_what_a_terminal_would_obey_is_left_out():
    (read,) = text_codec.decode(text_codec.encode([(0, "a\x1b[8mb\u202ec\td\ne")], 1, 40), 1, 40, 1)
    assert read == (0, "a [8mb c\td\ne")
    assert text_codec.decode(text_codec.encode([(0, "\x01\x02")], 1, 40), 1, 40, 1) == []
