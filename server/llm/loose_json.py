"""Lists and objects in a model's reply, in JSON or Python, also if they are cut off or have slips.

Slips are quotation marks and line breaks inside a string, wrong escapes, missing and superfluous commas, comments,
words of Python, tuples and typographic quotation marks.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

_START = re.compile(r"[\[{]")
_ONLY_A_MARK = re.compile(r"\s*(?:(?:\d{1,3}[.):]|[-*•>])\s+)?(?:\w+ ?= ?)?")
_GAP = re.compile(r"(?:[\s,]|//[^\n]*)*")
_COLON = re.compile(r"\s*:\s*")
_NO_TEXT = re.compile(r"(?:-?\d[\d.eE+-]*|null|none|true|false|nan|undefined|\.\.\.|…)(?!\w)", re.IGNORECASE)
_VALUE = rf"(?:[\"'“\[{{(]|{_NO_TEXT.pattern})"
_STRING_ENDS = rf"(?=\s*(?:\Z|[\]}}):]|,\s*(?:\Z|[\])}}]|//|{_VALUE})|\n\s*[\"'“\[{{]))"
_STRINGS = {
    opening: re.compile(
        rf"{opening}((?:\\.|[^\\{closing}]|{closing}(?!{_STRING_ENDS}))*){closing}", re.DOTALL | re.IGNORECASE
    )
    for opening, closing in ('""', "''", "“”")
}
_WHOLE_STRING = re.compile(r'"((?:\\.|[^\\"])*)"|“([^“”]*)”', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_CLOSING = {"[": "]", "{": "}", "(": ")"}
_DEEPEST = 20
_MOST_FAILURES = 100  # each may read the whole reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A list or object in a reply.

    Attributes:
        value: The list, or the object as a mapping; only what is complete.
        start: Place of its first character.
        end: Place after its last character.
        own_line: Whether only the number or bullet of an item, or "name =", stands before it on its line.
    """

    value: object
    start: int
    end: int
    own_line: bool


def found_values(text: str) -> Iterator[Found]:
    """Yield each list and object in a reply, in order, up to one that is cut off or wrong inside.

    Of a list that is cut off, the complete items are left; of an object, its lists and objects.
    """
    place, failures = 0, 0
    while failures < _MOST_FAILURES and (match := _START.search(text, place)):
        start = match.start()
        try:
            value, place, whole = _read(text, start)
        except ValueError:
            place, failures = start + 1, failures + 1
            continue
        line = text.rfind("\n", 0, start) + 1
        own_line = _ONLY_A_MARK.fullmatch(text, line, start) is not None
        yield Found(value=value, start=start, end=place if whole else len(text), own_line=own_line)
        if not whole:
            return


def read_string(text: str) -> str | None:
    """Return the string if the whole text is one in quotation marks, without further ones inside; else None."""
    string = _WHOLE_STRING.fullmatch(text)
    return _unescaped(string[1] or string[2] or "") if string else None


def read_value(text: str) -> object:
    """Return the value of a text that is JSON; else None."""
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return None if _is_deeper(value, _DEEPEST) else value


def _read(text: str, start: int) -> tuple[object, int, bool]:
    """Return the value at a place, the place after it, and whether it is whole.

    Raises:
        ValueError: There is no list or object with content.
    """
    try:
        value, end = json.JSONDecoder(strict=False).raw_decode(text, start)
        whole = True
    except (ValueError, RecursionError):
        value, end, whole = _loose(text, start, 0)
    if (not whole and not value) or _is_deeper(value, _DEEPEST):
        raise ValueError
    return value, end, whole


def _is_deeper(value: object, levels: int) -> bool:
    if not isinstance(value, list | dict):
        return False
    return not levels or any(
        _is_deeper(item, levels - 1) for item in (value.values() if isinstance(value, dict) else value)
    )


def _loose(text: str, place: int, depth: int) -> tuple[object, int, bool]:
    head = text[place : place + 1]
    if head in _STRINGS:
        if string := _STRINGS[head].match(text, place):
            return _unescaped(string[1]), string.end(), True
        raise ValueError
    if word := _NO_TEXT.match(text, place):
        return None, word.end(), True
    if head not in _CLOSING or depth == _DEEPEST:
        raise ValueError
    return _container(text, place + 1, _CLOSING[head], depth)


def _container(text: str, place: int, closing: str, depth: int) -> tuple[object, int, bool]:
    items: list[object] = []
    fields: dict[str, object] = {}
    whole = True
    while whole and not text.startswith(closing, place := _end(_GAP, text, place)):
        try:
            item, place, whole = _loose(text, place, depth + 1)
            if isinstance(item, str) and closing == "}" and (colon := _COLON.match(text, place)):
                fields[item], place, whole = _loose(text, colon.end(), depth + 1)
            elif whole or isinstance(item, list):
                items.append(item)
        except ValueError:
            whole = False
    if not whole:
        fields = {name: value for name, value in fields.items() if isinstance(value, list | dict)}
    return fields or items, place + whole, whole


def _end(pattern: re.Pattern[str], text: str, place: int) -> int:
    match = pattern.match(text, place)
    return match.end() if match else place


def _unescaped(inner: str) -> str:
    """Return a string's text. A backslash before a character that needs none is left out, before a letter it stays."""

    def valid(match: re.Match[str]) -> str:
        code, char = match.groups()
        if code:
            return f"\\u00{code}"
        if char in '"\\/bfnrtu':
            return match.group()
        return f"\\\\{char}" if char.isalnum() else char if char != "\n" else ""

    pieces = re.split(r'(?<!\\)((?:\\\\)*)"', _ESCAPE.sub(valid, inner))
    escaped = "".join(f'{piece}\\"' if at % 2 else piece for at, piece in enumerate(pieces))
    try:
        return str(json.loads(f'"{escaped}"', strict=False))
    except ValueError:
        return inner
