"""Names of hospitals in place of their numbers."""

import pytest

from common.domain import named

NAMES = ("St. Mary", "party 0", "St. Luke")  # a hospital may have such a name


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("party 2 refused: DECLINED, party 0 did not answer", "St. Luke refused: DECLINED, St. Mary did not answer"),
        ("party 1, mask", "party 0, mask"),
        ("party 3 and 3 parties", "party 3 and 3 parties"),
    ],
)
def test_names_stand_for_the_numbers_that_there_are(text, read):
    assert named(text, NAMES) == read
    assert named(text, ()) == text
