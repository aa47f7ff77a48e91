import pytest

from common.models.sentences import whole_sentences


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("He slept. She came by and", "He slept."),
        ("Is he well? (She asked.) Then", "Is he well? (She asked.)"),
        ("Fever since noon.\nNow it is 38.5 and", "Fever since noon."),
        ("no sentence ends here", ""),
        ("", ""),
    ],
)
def test_what_follows_the_last_whole_sentence_is_left_out(text, kept):
    assert whole_sentences(text) == kept
