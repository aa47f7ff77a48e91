"""One-line validators of configuration values: `positive(sigma=3.5)` returns nothing or raises ConfigError.

Values are keyword arguments, so that the message can name them: "sigma: expected a finite number > 0; got -1". With
`section="federation"` the name in the message is that of the configuration, "federation.parties".
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sized
from dataclasses import fields
from difflib import get_close_matches
from numbers import Real
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from common.errors import ConfigError
from common.spelling import CONTROL

_TYPES: Mapping[object, str] = {
    float: "a number",
    int: "an integer",
    str: "text",
    bool: "true or false",
    NoneType: "null",
}
"""Types of values in a settings file, and the words for them in messages."""


def check_type(name: str, value: object, annotation: object) -> None:
    """Check that a value from a settings file fits an argument with this annotation; a list stands for a tuple.

    The annotation is a type in `_TYPES`, a union or a tuple of such types; any other annotation accepts every value.
    """
    if not _fits(value, annotation):
        raise ConfigError(name, expected=_described(annotation), got=shown_value(value))


def check_fields(kind: type, values: Mapping[str, object]) -> None:
    """Check that each value fits the annotation of its field of a dataclass, as `check_type` does."""
    for field in fields(kind):
        if field.name in values:
            check_type(field.name, values[field.name], field.type)


def positive(*, section: str = "", infinite: bool = False, **values: float) -> None:
    """Check that each value is a number above 0; finite, unless it may be `infinite`."""
    expected = "a number > 0, or inf" if infinite else "a finite number > 0"
    _check_numbers(lambda value: value > 0 and (infinite or math.isfinite(value)), expected, section, values)


def at_least(low: float, *, section: str = "", **values: float) -> None:
    """Check that each value is a finite number not below `low`."""
    _check_numbers(lambda value: low <= value < math.inf, f"a finite number >= {low}", section, values)


def integers(low: int, *, section: str = "", **values: int) -> None:
    """Check that each value is an integer, and no other kind of number, not below `low`."""
    for name, value in values.items():
        if type(value) is not int or value < low:
            raise ConfigError(full_name(section, name), expected=f"an integer >= {low}", got=repr(value))


def integers_in(low: int, high: int, **values: int) -> None:
    """Check that each value is an integer, and no other kind of number, in the closed range [low, high]."""
    for name, value in values.items():
        if type(value) is not int or not low <= value <= high:
            raise ConfigError(name, expected=f"an integer in [{low}, {high}]", got=shown_value(value))


def flags(**values: bool) -> None:
    """Check that each value is true or false, and nothing else."""
    for name, value in values.items():
        if type(value) is not bool:
            raise ConfigError(name, expected="true or false", got=repr(value))


def in_range(low: float, high: float, *, section: str = "", **values: float) -> None:
    """Check that each value lies in the closed range [low, high]."""
    _check_numbers(lambda value: low <= value <= high, f"a number in [{low}, {high}]", section, values)


def probability(**values: float) -> None:
    """Check that each value lies strictly between 0 and 1."""
    _check_numbers(lambda value: 0 < value < 1, "a number strictly between 0 and 1", "", values)


def one_of(name: str, value: object, *, among: Collection[str]) -> None:
    """Check that the value is one of `among`."""
    if value not in among:
        raise ConfigError(name, expected=f"one of {', '.join(among)}", got=repr(value), do=suggest_name(value, among))


def suggest_name(value: object, among: Collection[str]) -> str | None:
    """Return advice about a misspelt name: the most similar name in `among`, or None if none is similar."""
    similar = get_close_matches(str(value), among, 1)
    return f"Did you mean {similar[0]}?" if similar else None


def known_keys(
    section: str, values: object, *, among: Collection[str], required: Collection[str] = ()
) -> Mapping[str, Any]:
    """Check that the values are a mapping with every key in `required` and no key outside `among`; return it.

    Errors name the section; if it is empty, they refer to the whole file.
    """
    known = ", ".join(sorted(among))
    if not isinstance(values, Mapping):
        got = _TYPES.get(type(values), type(values).__name__)  # and not the values: it may be a file of records
        raise ConfigError(section or "the file", expected=f"keys {known}", got=got, do="Give each key its value")
    for key in values:
        if key not in among:
            expected, do = f"one of {known}", suggest_name(key, among) or "Remove it"
            raise ConfigError(full_name(section, str(key)), expected=expected, got="an unknown key", do=do)
    for key in required:
        if key not in values:
            raise ConfigError(full_name(section, key), expected="a value", got="none")
    return values


def printable(*, most: int = 200, **values: str) -> None:
    """Check that each value is a name that is safe in a log: 1 to `most` printable characters."""
    for name, value in values.items():
        if not (0 < len(value) <= most and value.isprintable()):
            raise ConfigError(name, expected=f"1 to {most} printable characters", got=f"{len(value)} others")


def on_one_line(name: str, values: Iterable[str]) -> None:
    """Check that no value has a character that ends a line or controls a terminal, so that it is safe in a log."""
    if any(map(CONTROL.search, values)):
        raise ConfigError(name, expected="names on one line", got="a control character in one of them")


def not_empty(**values: Sized) -> None:
    """Check that each value has at least one element."""
    for name, value in values.items():
        if len(value) == 0:
            raise ConfigError(name, expected="at least one element", got="none")


def full_name(section: str, name: str) -> str:
    """Return the full name of a setting, such as "privacy.epsilon"; at the top, where `section` is empty, the name."""
    return f"{section}.{name}" if section else name


def _check_numbers(allowed: Callable[[Any], bool], expected: str, section: str, values: Mapping[str, object]) -> None:
    """Check that each value is an allowed number; a file or a command line can contain any value."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, Real) or not allowed(value):
            raise ConfigError(full_name(section, name), expected=expected, got=shown_value(value))


def shown_value(value: object) -> object:
    """Return a value as a message shows it: null as in YAML, and a text in quotes."""
    return "null" if value is None else repr(value) if isinstance(value, str) else value


def _fits(value: object, annotation: object) -> bool:
    if isinstance(annotation, UnionType):
        return any(_fits(value, option) for option in get_args(annotation))
    if get_origin(annotation) is tuple:
        return isinstance(value, (list, tuple)) and all(_fits(item, get_args(annotation)[0]) for item in value)
    # `type` and not `isinstance`: true is no number. An integer is a number.
    return annotation not in _TYPES or type(value) is annotation or (annotation is float and type(value) is int)


def _described(annotation: object) -> str:
    if isinstance(annotation, UnionType):
        return " or ".join(map(_described, get_args(annotation)))
    if get_origin(annotation) is tuple:
        return f"a list, each item {_described(get_args(annotation)[0])}"
    return _TYPES[annotation]
