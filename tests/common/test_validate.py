import math
import sys
import unicodedata
from functools import partial
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

VALUES = [
    (positive, [1e-300, 3], [0, -1, math.inf, math.nan, None, "3", True]),
    (partial(at_least, 0), [0, 5.5], [-1, math.inf, math.nan, None, "0"]),
    (partial(in_range, 0, 1), [0, 1], [1.001, math.nan, None, [0]]),
    (probability, [1e-12, 1 - 1e-12], [0, 1, math.nan, None, "0.5"]),
    (partial(integers_in, 1, 3), [1, 3], [0, 4, 2.0, True, "2", None]),
    (flags, [True, False], [0, 1, "true", None]),
    (not_empty, [[0], "x", {1: 2}], [()]),
]
"""Checks of values by name, with right and wrong ones."""
TYPES = [
    (float, [1], [None, "1", True]),
    (int, [1], [True, 1.0]),
    (str, [""], [1]),
    (bool, [False], [1]),
    (float | None, [1.5, None], ["x"]),
    (tuple[str, ...], [["x"], ()], ["x", ["x", 1]]),
    (tuple[str | None, ...], [["x", None]], [3]),
    (Path, [object()], []),
]
"""Annotations, with values that fit and others."""


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    VALUES
    + [(lambda sigma, kind=kind: check_type("sigma", sigma, kind), right, wrong) for kind, right, wrong in TYPES],
)
def test_wrong_values_are_refused_by_name_and_right_ones_pass(check, right, wrong):
    for value in right:
        assert check(sigma=value) is None
    for value in wrong:
        with pytest.raises(ConfigError, match="sigma;"):
            check(sigma=value)


def test_an_error_names_the_wrong_value_alone_and_shows_it():
    with pytest.raises(ConfigError, match=r"^privacy\.sigma;.*got -1\. Set privacy\.sigma to such a value$"):
        positive(section="privacy", fine=1, sigma=-1)
    with pytest.raises(ConfigError, match=r"sigma;.*got null"):
        positive(sigma=None)
    one_of("unit", "user", among=("sample", "user"))
    with pytest.raises(ConfigError, match=r"unit;.*got 'party'"):
        one_of("unit", "party", among=("sample", "user"))


@pytest.mark.parametrize(
    ("section", "values", "required", "named"),
    [
        ("", {"sigma": 1}, (), "sigma;"),
        ("sigma", [], (), "sigma;"),
        ("", {}, ("s",), "s;"),
        ("limits", {"max_to": 1}, (), r"limits\.max_to;"),
    ],
)
def test_keys_that_are_unknown_or_missing_are_named(section, values, required, named):
    with pytest.raises(ConfigError, match=f"^{named}"):
        known_keys(section, values, among=("s",), required=required)


def test_every_character_that_ends_a_line_or_controls_a_terminal_is_refused_and_no_other():
    on_one_line("labels", ["asthma, severe", "\N{FACE WITH MEDICAL MASK}\N{ZERO WIDTH JOINER}", 'a "quote"'])
    with pytest.raises(ConfigError, match="sigma;"):
        on_one_line("sigma", ["a", "b\n"])
    for letter in map(chr, range(sys.maxunicode + 1)):
        controls = unicodedata.category(letter) in {"Cc", "Zl", "Zp"}
        assert bool(CONTROL.search(letter)) == controls, hex(ord(letter))
        assert controls or len(f"a{letter}b".splitlines()) == 1
