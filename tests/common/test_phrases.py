"""Names of hospitals in place of their numbers, in whatever a message is made of."""

import inspect
import pickle

import pytest

from common import errors
from common.errors import AwaitingError, CaucusError, ConfigError
from common.phrases import (
    NumberedParty,
    Phrase,
    capital,
    group_by_four,
    join_phrases,
    list_parties,
    percent,
    render_phrase,
    series,
)

NAMES = ("St. Mary", "party 0", "St. Luke")  # a hospital may have such a name
KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, CaucusError)]


@pytest.mark.parametrize(
    ("words", "numbers", "names"),
    [
        (NumberedParty(2), "party 2", "St. Luke"),
        (Phrase(NumberedParty(1), ", mask"), "party 1, mask", "party 0, mask"),
        (Phrase(NumberedParty(3), " and 3 parties"), "party 3 and 3 parties", "party 3 and 3 parties"),
        (list_parties({2, 0}, " and "), "party 0 and party 2", "St. Mary and St. Luke"),
        (join_phrases([Phrase(NumberedParty(0), " left"), "2"], "; "), "party 0 left; 2", "St. Mary left; 2"),
        (list_parties([]), "none", "none"),
        ("party 0", "party 0", "party 0"),
    ],
)
def test_names_stand_for_the_parties_and_for_nothing_else(words, numbers, names):
    assert str(words) == render_phrase(words) == numbers
    assert render_phrase(words, NAMES) == names


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not AwaitingError])
def test_every_error_keeps_its_fields_until_it_is_shown(kind):
    inner = kind("share", expected="party 0", got=list_parties([0]), where=Phrase(NumberedParty(2), ", mask"), do="Ask")
    assert str(inner) == "share; expected party 0; got party 0; at party 2, mask. Ask"
    error = kind("reply", got=inner)
    assert error.text(NAMES) == "reply; got share; expected party 0; got St. Mary; at St. Luke, mask. Ask"
    assert error.got is inner
    copied = pickle.loads(pickle.dumps(inner))
    assert (str(copied), copied.what, copied.where.text(NAMES)) == (str(inner), "share", "St. Luke, mask")


def test_the_error_of_a_pause_names_who_is_awaited():
    error = AwaitingError({2, 0})
    assert error.parties == (0, 2)
    assert str(error).endswith("party 0 and party 2")
    assert pickle.loads(pickle.dumps(error)).text(NAMES).endswith("St. Mary and St. Luke")


def test_a_place_is_added_behind_the_places_that_are_there():
    error = ConfigError("seeds.most", got=0)
    assert str(error.placed("client.yaml:3")) == "seeds.most; got 0; at client.yaml:3"
    assert str(error.placed("page 2")) == "seeds.most; got 0; at client.yaml:3; at page 2"


def test_series_capitals_and_digests_are_read_as_in_a_sentence():
    assert [series("abc"[:count], "or") for count in range(4)] == ["", "a", "a or b", "a, b or c"]
    assert [capital(words) for words in ("ECG report", "übelkeit und MRT", "")] == [
        "ECG report",
        "Übelkeit und MRT",
        "",
    ]
    assert [group_by_four(digest) for digest in ("", "01234", "01234567")] == ["", "0123 4", "0123 4567"]


@pytest.mark.parametrize(
    ("share", "decimals", "shown"),
    [(0.835, 1, "83.5%"), (0.19, 1, "19.0%"), (-1e-17, 1, "0.0%"), (0.5, 0, "50%"), (1.0, 0, "100%")],
)
def test_a_percentage_has_its_sign_right_behind_the_figure(share, decimals, shown):
    assert percent(share, decimals) == shown
