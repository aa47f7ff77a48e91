import math
import sys
import unicodedata
from pathlib import Path

import pytest

from common.errors import ConfigError
from common.spelling import CONTROL
from common.validate import (
    at_least,
    check_type,
    flags,
    in_range,
    integers_in,
    known_keys,
    not_empty,
    on_one_line,
    one_of,
    positive,
    probability,
)


@pytest.mark.parametrize(
    "accepted",
    [
        lambda: positive(a=1e-300, b=3),
        lambda: at_least(0, a=0, b=5.5),
        lambda: at_least(-1, a=-1),
        lambda: in_range(0, 1, a=0, b=1),
        lambda: probability(a=1e-12, b=1 - 1e-12),
        lambda: one_of("unit", "user", among=("sample", "user")),
        lambda: not_empty(a=[0], b="x", c={1: 2}),
        lambda: check_type("a", 1, float),
        lambda: check_type("a", 1.5, float | None),
        lambda: check_type("a", None, float | None),
        lambda: check_type("a", ["x"], tuple[str, ...]),
        lambda: check_type("a", (), tuple[str, ...]),
        lambda: check_type("a", object(), Path),
    ],
)
def test_right_values_pass(accepted):
    assert accepted() is None


@pytest.mark.parametrize(
    "refused",
    [
        lambda: positive(sigma=0),
        lambda: positive(sigma=-1),
        lambda: positive(sigma=math.inf),
        lambda: positive(sigma=math.nan),
        lambda: positive(fine=1, sigma=0),
        lambda: at_least(2, sigma=1.999),
        lambda: at_least(2, sigma=math.inf),
        lambda: at_least(2, sigma=math.nan),
        lambda: in_range(0, 1, sigma=1.001),
        lambda: in_range(0, 1, sigma=math.nan),
        lambda: probability(sigma=0),
        lambda: probability(sigma=1),
        lambda: probability(sigma=math.nan),
        lambda: positive(sigma=None),
        lambda: positive(sigma="3"),
        lambda: positive(sigma=True),
        lambda: at_least(0, sigma=None),
        lambda: at_least(0, sigma="0"),
        lambda: in_range(0, 1, sigma=None),
        lambda: in_range(0, 1, sigma=[0]),
        lambda: probability(sigma=None),
        lambda: probability(sigma="0.5"),
        lambda: check_type("sigma", None, float),
        lambda: check_type("sigma", "1", float),
        lambda: check_type("sigma", True, float),
        lambda: check_type("sigma", True, int),
        lambda: check_type("sigma", 1.0, int),
        lambda: check_type("sigma", 1, str),
        lambda: check_type("sigma", 1, bool),
        lambda: check_type("sigma", "x", tuple[str, ...]),
        lambda: check_type("sigma", ["x", 1], tuple[str, ...]),
        lambda: check_type("sigma", "x", float | None),
        lambda: known_keys("", {"sigma": 1}, among=("s",)),
        lambda: known_keys("sigma", [], among=("s",)),
        lambda: known_keys("", {}, among=("sigma", "s"), required=("sigma",)),
        lambda: one_of("sigma", "party", among=("sample", "user")),
        lambda: not_empty(sigma=()),
        lambda: on_one_line("sigma", ["a", "b\n"]),
    ],
)
def test_wrong_values_are_refused_by_name(refused):
    with pytest.raises(ConfigError, match="sigma") as caught:
        refused()
    assert "fine" not in str(caught.value)


def test_messages_say_what_was_expected_and_got():
    with pytest.raises(ConfigError, match=r"sigma;.*got -1"):
        positive(sigma=-1)
    with pytest.raises(ConfigError, match=r"unit;.*got 'party'"):
        one_of("unit", "party", among=("sample", "user"))
    with pytest.raises(ConfigError, match=r"sigma;.*got null"):
        positive(sigma=None)
    with pytest.raises(ConfigError, match=r"queries;.*got 3"):
        check_type("queries", 3, tuple[str | None, ...])
    with pytest.raises(ConfigError, match=r"limits.max_to;"):
        known_keys("limits", {"max_to": 1}, among=("max_top",))


@pytest.mark.parametrize("wrong", [0, 4, 2.0, True, "2", None])
def test_integers_in_a_range(wrong):
    assert integers_in(1, 3, a=1, b=3) is None
    with pytest.raises(ConfigError, match="sigma"):
        integers_in(1, 3, sigma=wrong)


@pytest.mark.parametrize("wrong", [0, 1, "true", None])
def test_flags_are_nothing_but_true_or_false(wrong):
    assert flags(a=True, b=False) is None
    with pytest.raises(ConfigError, match="sigma;"):
        flags(sigma=wrong)


def test_every_character_that_ends_a_line_or_controls_a_terminal_is_refused_and_no_other():
    on_one_line("labels", ["asthma, severe", "\N{FACE WITH MEDICAL MASK}\N{ZERO WIDTH JOINER}", 'a "quote"'])
    for letter in map(chr, range(sys.maxunicode + 1)):
        controls = unicodedata.category(letter) in {"Cc", "Zl", "Zp"}
        assert bool(CONTROL.search(letter)) == controls, hex(ord(letter))
        assert controls or len(f"a{letter}b".splitlines()) == 1
