"""Structured texts: each is a JSON object that follows a schema declared by the task, with the text in one field.

An object can stand wherever a text can; an object from a model is one line of JSON with its fields in the schema's
order. Both sides embed the whole object as a text, so votes compare all fields, nothing else has to be agreed on, and
no party is queried for a field. A schema may come from somebody else's file, so it must be in a closed subset of JSON
Schema that can neither refer to other documents nor take long to check: an object of named strings, numbers and truth
values, without references, patterns or nesting, and of bounded size.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import yaml

from common.domain import Record
from common.errors import ConfigError, DataError
from common.validate import at_least, known_keys, one_of

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

TYPES = ("string", "integer", "number", "boolean")
MOST_FIELDS = 50
MOST_VALUES = 200
"""Maximum number of values of one enumeration."""
LONGEST_NAME = 100
"""Maximum number of characters of a field's name, and of a value of an enumeration."""
LONGEST_DESCRIPTION = 500
LONGEST_LOOSE = 20_000
"""Maximum length, in characters, of a text that is parsed as YAML; some 25,000 characters take a second."""
LARGEST = 1e300
"""Largest absolute value of a number: longer integers cannot be written in digits, and JSON has no infinity."""

_OF_SCHEMA = ("type", "properties", "required", "additionalProperties", "description")
_OF_FIELD = ("type", "enum", "description", "minimum", "maximum")
_REASONS = {
    "type": "wrong type",
    "enum": "unknown value",
    "required": "missing field",
    "additionalProperties": "unknown field",
}
_SHOWN = 10

Object = dict[str, Any]
"""The fields of one text, in the schema's order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """The declaration of a task's structured texts.

    Attributes:
        text_field: Name of the field with the text itself, a string that every object has.
        schema: JSON Schema of the closed subset, as JSON. Canonical texts have its order of fields.
    """

    text_field: str
    schema: str

    @classmethod
    def of(cls, settings: object, name: str = "structure") -> Self:
        """Return the structure from settings: `text_field`, and `schema` with `properties` and optionally `required`.

        Args:
            settings: Plain values, as from YAML.
            name: Name of these settings in messages.

        Raises:
            ConfigError: A setting is missing, unknown, too large or of the wrong type.
        """
        given = known_keys(name, settings, among=("text_field", "schema"), required=("text_field", "schema"))
        schema = f"{name}.schema"
        content = known_keys(schema, given["schema"], among=_OF_SCHEMA, required=("properties",))
        one_of(f"{schema}.type", content.get("type", "object"), among=("object",))
        if content.get("additionalProperties", False) is not False:
            raise ConfigError(f"{schema}.additionalProperties", expected="false, as it always is", got="another")
        properties, required = content["properties"], content.get("required", [])
        if not isinstance(properties, Mapping) or not 1 <= len(properties) <= MOST_FIELDS:
            raise ConfigError(f"{schema}.properties", expected=f"1 to {MOST_FIELDS} fields by name", got="others")
        fields = {_named(f"{schema}.properties", key): _field(schema, key, value) for key, value in properties.items()}
        text_field = given["text_field"]
        if not isinstance(text_field, str) or fields.get(text_field, {}).keys() - {"description"} != {"type"}:
            raise ConfigError(
                f"{name}.text_field", expected="one of the schema's strings, without enumeration", got=repr(text_field)
            )
        one_of(f"{name}.text_field, its type", fields[text_field]["type"], among=("string",))
        if not isinstance(required, Sequence) or any(str(field) not in fields for field in required):
            raise ConfigError(f"{schema}.required", expected=f"a list of {', '.join(fields)}", got=repr(required))
        whole = {
            "type": "object",
            "properties": fields,
            "required": [field for field in fields if field in required or field == text_field],
            "additionalProperties": False,
        }
        return cls(text_field=text_field, schema=json.dumps(whole, ensure_ascii=False))

    @property
    def properties(self) -> Mapping[str, Mapping[str, Any]]:
        """The schema of each field, keyed by name, in order."""
        return _parsed(self.schema)["properties"]  # type: ignore[no-any-return]

    @property
    def required(self) -> frozenset[str]:
        """Names of the fields that every object has."""
        return frozenset(_parsed(self.schema)["required"])

    def reason(self, text: str) -> str | None:
        """Return why a text, unchanged, is not an object of the schema, without quoting it; None if it is one."""
        fields = _object(text)
        return "not an object" if fields is None else self._reason(fields)

    def fields(self, text: str) -> Object | None:
        """Return the fields of a text that is, unchanged, an object of the schema; None for any other text."""
        fields = _object(text)
        return None if fields is None or self._reason(fields) else fields

    def reading(self, text: str) -> str:
        """Return the part of a text that a classifier reads: its text field, or the whole of an unstructured text."""
        fields = self.fields(text)
        return text if fields is None else without_surrogates(fields[self.text_field])

    def canonical(self, fields: Mapping[str, Any]) -> str:
        """Return an object as one line of JSON, with its fields in the schema's order."""
        return without_surrogates(
            json.dumps({key: fields[key] for key in self.properties if key in fields}, ensure_ascii=False)
        )

    def read(self, text: str) -> tuple[str | None, tuple[str, ...]]:
        """Read a text that a model or a hospital wrote, and repair it if necessary.

        These faults are repaired: code fences and words around the object, single quotes and trailing commas, fields
        that the schema does not have, optional fields that are null, numbers in quotes, and values whose case differs
        from their enumeration's.

        Returns:
            The canonical text and the kinds of repair; or None and the reason why the text is not an object of the
            schema.
        """
        fields, repairs = _mended(text)
        if fields is None:
            return None, ("not an object",)
        known = {key: value for key, value in fields.items() if key in self.properties}
        repairs += ("unknown field left out",) * (len(known) < len(fields))
        given = {key: value for key, value in known.items() if value is not None or key in self.required}
        repairs += ("empty field left out",) * (len(given) < len(known))
        fitted = {key: _fitted(value, self.properties[key]) for key, value in given.items()}
        repairs += ("value as in the schema",) * (fitted != given)
        if reason := self._reason(fitted):
            return None, (reason,)
        return self.canonical(fitted), repairs

    def _reason(self, fields: Object) -> str | None:
        """Return why an object does not fit the schema, without its content; None if it fits."""
        # Before the validator, which cannot write a whole number of 5000 digits into its message.
        if any(isinstance(value, int | float) and not abs(value) <= LARGEST for value in fields.values()):
            return "out of range"
        for error in _validator(self.schema).iter_errors(fields):
            return _REASONS.get(str(error.validator), "out of range")
        return None if fields[self.text_field].strip() else "empty text"


def check_records(records: Sequence[Record], structure: Structure, path: str | Path) -> None:
    """Raise DataError if texts of records do not have the structure; real records are never repaired.

    Raises:
        DataError: Some records do not have the structure; the message contains their numbers in the file, from 1, and
            the reasons, but no part of their texts.
    """
    reasons = {number: reason for number, record in enumerate(records, 1) if (reason := structure.reason(record.text))}
    if not reasons:
        return
    numbers = ", ".join(map(str, list(reasons)[:_SHOWN])) + ", ..." * (len(reasons) > _SHOWN)
    raise DataError(
        "texts that are not of the task's structure",
        expected="a JSON object of its schema in each `text`",
        got=", ".join(sorted(set(reasons.values()))),
        where=f"{path}, records {numbers}",
        do="Mend these records, or the schema",
    )


def _named(where: str, key: object) -> str:
    if not isinstance(key, str) or not key.strip() or not key.isprintable() or len(key) > LONGEST_NAME:
        raise ConfigError(where, expected=f"names of 1 to {LONGEST_NAME} printable characters", got=repr(key)[:80])
    return key


def _field(schema: str, key: object, given: object) -> dict[str, Any]:
    """Check the schema given for one field, and return it."""
    where = f"{schema}.properties.{str(key)[:LONGEST_NAME]}"
    field = dict(known_keys(where, given, among=_OF_FIELD, required=("type",)))
    one_of(f"{where}.type", field["type"], among=TYPES)
    kind, values, description = field["type"], field.get("enum", [""]), field.get("description", "")
    if not isinstance(description, str) or len(description) > LONGEST_DESCRIPTION or not description.isprintable():
        expected = f"a line of at most {LONGEST_DESCRIPTION} characters"
        raise ConfigError(f"{where}.description", expected=expected, got="another")
    if "enum" in field:
        one_of(f"{where}.type", kind, among=("string",))  # YAML does not read an unquoted yes, no or 1 as text
        if not isinstance(values, Sequence) or isinstance(values, str) or not 1 <= len(values) <= MOST_VALUES:
            raise ConfigError(f"{where}.enum", expected=f"a list of 1 to {MOST_VALUES} texts", got="another")
        if len({_named(f"{where}.enum", value).casefold() for value in values}) < len(values):
            raise ConfigError(f"{where}.enum", expected="values that differ, not by case alone", got="equal ones")
    for bound in {"minimum", "maximum"} & field.keys():
        one_of(f"{where}.type", kind, among=("integer", "number"))
        at_least(-1e12, **{f"{where}.{bound}": field[bound]})
    return field


@lru_cache(maxsize=16)
def _parsed(schema: str) -> dict[str, Any]:
    return json.loads(schema)  # type: ignore[no-any-return]


@lru_cache(maxsize=16)
def _validator(schema: str) -> "Draft202012Validator":
    from jsonschema import Draft202012Validator

    return Draft202012Validator(_parsed(schema))


def _object(text: str, *, strict: bool = True) -> Object | None:
    """Return the JSON object that a text consists of, or None. Unless strict, strings may contain line breaks."""
    try:
        value = json.loads(text, strict=strict)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _mended(text: str) -> tuple[Object | None, tuple[str, ...]]:
    """Return the object found in a text, even among other words or in looser YAML notation, and the repairs made."""
    body = text.strip()
    start, end = body.find("{"), body.rfind("}") + 1
    inner = body[start:end] if start >= 0 else body
    around = ("words around the object",) * (inner != body)
    if (fields := _object(inner, strict=False)) is not None:
        return fields, around
    return _loose(inner), (*around, "notation")


class _Flat(yaml.SafeLoader):  # type: ignore[misc]  # the library has no types
    """YAML loader for one flat object; it rejects tags and also aliases, which can make a short text large."""

    def compose_node(self, parent: object, index: object) -> object:
        event = self.peek_event()
        inner = parent is not None and isinstance(event, yaml.CollectionStartEvent)
        if inner or isinstance(event, yaml.AliasEvent) or getattr(event, "tag", None):
            raise yaml.YAMLError
        return super().compose_node(parent, index)


def _loose(text: str) -> Object | None:
    """Return an object of scalars in single quotes or with a trailing comma, as only YAML accepts; otherwise None."""
    if len(text) > LONGEST_LOOSE:
        return None
    try:
        value = yaml.load(text, _Flat)  # noqa: S506 it is a SafeLoader
    except (yaml.YAMLError, ValueError, OverflowError):  # the last two for dates and numbers that do not exist
        return None
    return value if isinstance(value, dict) and all(isinstance(key, str) for key in value) else None


def without_surrogates(text: str) -> str:
    """Return the text with a question mark for each half of a surrogate pair, which no file can hold.

    A language model may write one, and an escape in JSON can express it.
    """
    return text.encode(errors="replace").decode()


def _fitted(value: object, field: Mapping[str, Any]) -> object:
    """Convert a value to the form of its field, if it differs only in case or in the notation of a number."""
    if "enum" in field and isinstance(value, str):
        return next((known for known in field["enum"] if known.casefold() == value.strip().casefold()), value)
    if field["type"] in ("integer", "number") and isinstance(value, str):
        try:
            return int(value) if field["type"] == "integer" else float(value)
        except ValueError:
            return value
    return value
