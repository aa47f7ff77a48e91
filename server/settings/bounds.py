"""Bounds of settings, which stand in the annotations of a section's fields beside their defaults."""

from collections.abc import Callable, Collection
from contextlib import suppress
from functools import cache, partial
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from common import validate
from common.errors import InputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Bound = Callable[..., None]
"""Function that raises a ConfigError unless its one keyword argument, a setting, is within bounds."""


def whole(low: int, high: int | None = None) -> Bound:
    """Return the bound of whole numbers of at least `low` and, if it is given, at most `high`."""
    return partial(validate.integers, low) if high is None else partial(validate.integers_in, low, high)


def not_below(low: float) -> Bound:
    """Return the bound of finite numbers of at least `low`."""
    return partial(validate.at_least, low)


def between(low: float, high: float) -> Bound:
    """Return the bound of numbers in [low, high]."""
    return partial(validate.in_range, low, high)


def one_of(*names: str) -> Bound:
    """Return the bound of the given texts."""

    def check(**setting: str) -> None:
        for name, value in setting.items():
            validate.one_of(name, value, among=names)

    return check


Count = Annotated[int, whole(1)]
OptionalCount = Annotated[int | None, whole(1)]
Natural = Annotated[int, whole(0)]
Share = Annotated[float, between(0, 1)]
PositiveShare = Annotated[float, validate.positive, between(0, 1)]
Temperature = Annotated[float, between(0, 2)]
Positive = Annotated[float, validate.positive]
Probability = Annotated[float, validate.probability]
NotNegative = Annotated[float, not_below(0)]
LabelSetsShare = Annotated[float, between(0.01, 0.99)]
"""Fraction of epsilon for label sets that leaves enough for these and for other queries."""


@cache
def _bounds(section: type) -> list[tuple[str, Bound, bool]]:
    """Return the name of each bounded setting, its bound, and whether it may be null.

    A subclass that states a field anew, without a bound, keeps the bound of its base.
    """
    bounded: dict[str, Any] = {}
    for base in reversed(section.__mro__):
        with suppress(NameError):  # a field of somebody's own, whose type a type checker alone imports
            hints = get_type_hints(base, include_extras=True)
            bounded |= {name: hint for name, hint in hints.items() if get_origin(hint) is Annotated}
    return [
        (name, bound, NoneType in get_args(hint.__origin__))
        for name, hint in bounded.items()
        for bound in hint.__metadata__
    ]


def check_bounds(section: "DataclassInstance") -> None:
    """Check the settings of a section against the bounds in their annotations; null has none where it may stand.

    Raises:
        ConfigError: A setting is out of bounds; the message has its full name if the section knows its place.
    """
    for name, bound, optional in _bounds(type(section)):
        value = getattr(section, name)
        if value is None and optional:
            continue
        try:
            bound(**{name: value})
        except InputError as error:
            raise within(getattr(section, "place", ""), error, {name}) from error


def within(section: str, error: InputError, names: Collection[str]) -> InputError:
    """Return an error of a section with the full name of the setting if it has one of these short names."""
    if not section or error.what not in names:
        return error
    what = f"{section}.{error.what}"
    return type(error)(what, expected=error.expected, got=error.got, where=error.where, do=error.do)
