"""Conversion of frozen dataclasses to JSON and back, following the types of their fields; arrays as base64.

If a key is missing, its field gets the default, so that files of earlier versions can be read. In JSON, infinities are
"inf" and "-inf", and NaN is null, since strict JSON has no such numbers.
"""

import base64
import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import EnumType
from functools import cache
from typing import Any, TypeGuard, TypeVar, Union

import numpy as np
from numpy.typing import NDArray

_T = TypeVar("_T")

ABSENT = {"absent": None}
"""Metadata of a field that has no key in JSON if it is None; another value may be specified in place of None."""
OTHERS = {"others": True}
"""Metadata of a field that contains all keys in the JSON object that belong to no other field."""

MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""Errors that may be raised when JSON of another format is read."""


class FieldError(ValueError):
    """A field of a document is missing, or of the wrong type.

    Attributes:
        field: The field, such as "spent.epsilon"; empty for the document itself.
        expected: Value or type that the field has in a valid document.
        missing: Whether the field is missing.
    """

    def __init__(self, name: str, expected: str, *, missing: bool = False) -> None:
        super().__init__(f"{name}: {expected}")
        self.field, self.expected, self.missing = name, expected, missing


def to_json(document: Any) -> dict[str, Any]:
    """Return the fields of a dataclass in the order of their declaration, as strict JSON."""
    made: dict[str, Any] = {}
    for attribute in fields(document):
        value = getattr(document, attribute.name)
        if "others" in attribute.metadata:
            made |= strict(value)
        elif "absent" not in attribute.metadata or value != attribute.metadata["absent"]:
            made[attribute.name] = strict(value)
    return made


def strict(value: Any) -> Any:
    """Return a value as strict JSON, the form used in run folders, in `report.json` and in the output of commands."""
    match value:
        case float() if not math.isfinite(value):
            return None if math.isnan(value) else str(value)
        case Mapping():
            return {str(key): strict(inner) for key, inner in value.items()}
        case list() | tuple():
            return [strict(inner) for inner in value]
        case _ if is_dataclass(value):
            return value.to_json() if hasattr(value, "to_json") else to_json(value)
        case _:
            return value


def with_infinities(value: Any) -> Any:
    """Return JSON with its infinities as numbers again, which inverts `strict` if no text equals "inf" or "-inf"."""
    match value:
        case dict():
            return {key: with_infinities(inner) for key, inner in value.items()}
        case list():
            return [with_infinities(inner) for inner in value]
        case "inf" | "-inf":
            return float(value)
        case _:
            return value


def from_json(kind: type[_T], value: Any) -> _T:
    """Return an instance of the dataclass `kind`, with the fields of a JSON object.

    Raises:
        FieldError: The value is not an object, or a field is missing or of the wrong type.
    """
    _of(value, Mapping)
    known: dict[str, tuple[Field[Any], Callable[[Any], Any]]] = _fields(kind)  # type: ignore[arg-type]
    made: dict[str, Any] = {}
    for name, (attribute, convert) in known.items():
        if "others" in attribute.metadata:
            made[name] = {key: inner for key, inner in value.items() if key not in known or key == name}
        elif name in value:
            made[name] = _named(name, convert, value[name])
        elif "absent" in attribute.metadata:
            made[name] = attribute.metadata["absent"]
        elif attribute.default is MISSING and attribute.default_factory is MISSING:
            raise FieldError(name, "an entry", missing=True)
    return kind(**made)


def pack_floats(array: NDArray[np.floating]) -> str:
    """Return an array's entries in row-major order as base64 of little-endian float32, without the shape."""
    return base64.b64encode(array.astype("<f4").tobytes()).decode()


def unpack_floats(text: str, rows: int) -> NDArray[np.float32]:
    """Return the array that `pack_floats` encoded, with `rows` rows.

    Raises:
        ValueError: `text` is not base64, or its length does not match `rows` rows.
    """
    flat = np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4").astype(np.float32)
    return flat.reshape(rows, -1)


def _named(name: str, convert: Callable[[Any], Any], value: object) -> Any:
    try:
        return convert(value)
    except FieldError as error:
        inner = f"{name}.{error.field}" if error.field else name
        raise FieldError(inner, error.expected, missing=error.missing) from None


@cache
def _fields(kind: type) -> dict[str, tuple["Field[Any]", Callable[[Any], Any]]]:
    hints = typing.get_type_hints(kind)
    return {attribute.name: (attribute, _converter(hints[attribute.name])) for attribute in fields(kind)}


def _converter(hint: Any) -> Callable[[Any], Any]:
    """Return the function that converts JSON to a value of this type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in {Union, types.UnionType}:
        (inner,) = (_converter(argument) for argument in arguments if argument is not type(None))
        return lambda value: None if value is None else inner(value)
    if origin is tuple:
        inner = _converter(arguments[0])
        return lambda value: tuple(map(inner, _of(value, list)))
    if origin is Mapping:
        inner = _converter(arguments[1])
        return lambda value: {key: inner(item) for key, item in _of(value, Mapping).items()}
    if hasattr(hint, "from_json"):
        return typing.cast("Callable[[Any], Any]", hint.from_json)
    if is_dataclass(hint):
        return lambda value: from_json(typing.cast("type[Any]", hint), value)
    plain = {Any: lambda value: value, float: _number}
    return plain.get(hint, hint if isinstance(hint, EnumType) else lambda value: _of(value, hint))


_WORDS = {str: "text", int: "a whole number", bool: "true or false", list: "a list", Mapping: "an object"}


def _of(value: Any, kind: Any) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise FieldError("", _WORDS.get(kind, "a number"))
    return value


def is_number(value: object) -> TypeGuard[float]:
    """Return whether the value is a JSON number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Any) -> float:
    return float(value) if value in ("inf", "-inf") else _of(value, int | float)
