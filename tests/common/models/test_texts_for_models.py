"""What models are given, and what is kept of their answers."""

import pytest

from common.models.batches import batches_by_tokens
from common.models.chat import whole_sentences


def test_batches_hold_texts_of_like_length_within_the_budget():
    assert batches_by_tokens([3, 50, 4, 7, 200, 1, 0], 100) == [[4], [1, 3], [2, 0, 5, 6]]
    assert batches_by_tokens([10] * 7, 30) == [[0, 1, 2], [3, 4, 5], [6]]
    assert batches_by_tokens([], 10) == []
    assert batches_by_tokens([0, 0], 1) == [[0], [1]]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("He slept. She came by and", "He slept."),
        ("Is he well? (She asked.) Then", "Is he well? (She asked.)"),
        ("Fever since noon.\nNow it is 38.5 and", "Fever since noon."),
        ("no sentence ends here", ""),
    ],
)
def test_what_follows_the_last_whole_sentence_is_left_out(text, kept):
    assert whole_sentences(text) == kept
