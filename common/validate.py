"""One-line validators of configuration values: `positive(sigma=3.5)` returns nothing or raises ConfigError.

Values are keyword arguments, so that the message can name them: "sigma: expected a finite number > 0; got -1". With
`section="federation"` the name in the message is that of the configuration, "federation.parties".
"""

import math
from collections.abc import Collection, Sized

from common.errors import ConfigError


def positive(*, section: str = "", **values: float) -> None:
    """Each value is a finite number above 0."""
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise ConfigError(_full(section, name), expected="a finite number > 0", got=value)


def at_least(low: float, *, section: str = "", **values: float) -> None:
    """Each value is a finite number not below `low`."""
    for name, value in values.items():
        if not (math.isfinite(value) and value >= low):
            raise ConfigError(_full(section, name), expected=f"a finite number >= {low}", got=value)


def integers(low: int, *, section: str = "", **values: int) -> None:
    """Each value is an integer, no other number, not below `low`."""
    for name, value in values.items():
        if type(value) is not int or value < low:
            raise ConfigError(_full(section, name), expected=f"an integer >= {low}", got=repr(value))


def integers_in(low: int, high: int, **values: int) -> None:
    """Each value is an integer, no other number, in the closed range [low, high]."""
    for name, value in values.items():
        if type(value) is not int:
            raise ConfigError(name, expected="an integer", got=repr(value))
        if not low <= value <= high:
            raise ConfigError(name, expected=f"a number in [{low}, {high}]", got=value)


def flags(**values: bool) -> None:
    """Each value is true or false, and nothing else."""
    for name, value in values.items():
        if type(value) is not bool:
            raise ConfigError(name, expected="true or false", got=repr(value))


def in_range(low: float, high: float, *, section: str = "", **values: float) -> None:
    """Each value lies in the closed range [low, high]."""
    for name, value in values.items():
        if not low <= value <= high:
            raise ConfigError(_full(section, name), expected=f"a number in [{low}, {high}]", got=value)


def probability(**values: float) -> None:
    """Each value lies strictly between 0 and 1."""
    for name, value in values.items():
        if not 0 < value < 1:
            raise ConfigError(name, expected="a number strictly between 0 and 1", got=value)


def one_of(name: str, value: object, *, among: Collection[str]) -> None:
    """The value is one of `among`."""
    if value not in among:
        raise ConfigError(name, expected=f"one of {', '.join(among)}", got=repr(value))


def printable(**values: str) -> None:
    """Each value is a name that is safe in a log: 1 to 200 printable characters."""
    for name, value in values.items():
        if not (0 < len(value) <= 200 and value.isprintable()):
            raise ConfigError(name, expected="1 to 200 printable characters", got=f"{len(value)} others")


def not_empty(**values: Sized) -> None:
    """Each value has at least one element."""
    for name, value in values.items():
        if len(value) == 0:
            raise ConfigError(name, expected="at least one element", got="none")


def _full(section: str, name: str) -> str:
    return f"{section}.{name}" if section else name
