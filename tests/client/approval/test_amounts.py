"""What a sheet says of all records of one person, in whatever way the hospital writes the person."""

import pytest

from client.approval.amounts import count_own_records
from common.domain import Record
from tests.support.federations import plan
from tests.support.spellings import WORDS, spellings


@pytest.mark.parametrize("word", [*WORDS, "A7", "\u0410 7"])
def test_the_most_records_of_one_user_count_each_spelling_of_the_user(word):
    for other in spellings(word):
        users = [word, other, "zoe", other]
        counted = count_own_records(plan(2), [Record(f"{nth}", "a", user) for nth, user in enumerate(users)], ())
        assert (counted.most_of_user, counted.users, counted.taking_part) == (3, 3, 4)


def test_letters_of_another_script_make_no_other_user():
    users = ["A7", "a 7", "\u0410" + "7", "\u0391" + "7", "B7"]
    counted = count_own_records(plan(2), [Record(f"{nth}", "a", user) for nth, user in enumerate(users)], ())
    assert (counted.most_of_user, counted.users) == (4, 5)


def test_records_without_users_have_no_most():
    assert count_own_records(plan(2), [Record("x", "a"), Record("y", "a")], ()).most_of_user is None
