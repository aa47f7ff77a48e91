"""Conversion of a completion into the texts, phrases or objects that its prompt asked for."""

import json
import re
from collections.abc import Iterator
from typing import Any

_ITEM = re.compile(r"^\s*(?:\d{1,3}[.):]|[-*•])\s+", re.MULTILINE)
_FENCE = re.compile(r"```[\w-]*\n?")
_THOUGHTS = re.compile(r"\A(?:.*</think>|\s*<think>.*)", re.DOTALL)  # a prompt may have the opening tag
_LIST = re.compile(r"\[[\s\[]*[\"{\]]")
_ONLY_A_LIST = re.compile(rf"(?![{{\"])(?:[^\n\[]*:)?\s*{_LIST.pattern}")
_BEFORE_JSON = re.compile(r"[^\n]*:\s*\n\s*(?=[\"{])")
_BETWEEN_ITEMS = re.compile(r"[\s,\[\]]*(?=[\"{])")  # lists in a list are one list
_LETTERS = re.compile(r"\W+")
_AROUND = " \t\"',;."
_TEXT_FIELDS = ("text", "message", "content", "body")
_LONGEST_PHRASE = 8  # words; a longer item of a list of phrases counts as prose


def parse(
    completion: str, n: int, *, phrases: bool = False, objects: bool = False, cut: bool = False
) -> tuple[str, ...]:
    """Extract at most `n` texts, phrases, or objects (as unchecked text) from a completion.

    If one text was requested, the completion is the text, unless it is a JSON list, string or object with the text. In
    an object, the text is the field "text", "message", "content" or "body", or else the longest. If the completion was
    `cut` off at the limit of its length, there is no such text.
    Several texts are read from a JSON list or from a numbered or bulleted list; of a truncated JSON list, only the
    complete items are used. For phrases, a list inside an object and plain lines are accepted too. Blank items, prose
    in place of several texts, and repeated phrases are dropped; `clean` handles all other defects of a text.
    """
    bare = _FENCE.sub("", _THOUGHTS.sub("", completion)).strip()
    if objects:
        return tuple(_objects(bare))[:n]
    items = _json_items(bare, nested=phrases) if n > 1 or phrases or _ONLY_A_LIST.match(bare) else None
    if items is None:
        items = [_one_text(bare)] * (not cut) if n == 1 else _listed_items(bare) or (_lines(bare) if phrases else [])
    if phrases:
        items = [item.strip(_AROUND) for item in items if len(item.split()) <= _LONGEST_PHRASE]
        items = list({normal(item): item for item in reversed(items)}.values())[::-1]
    return tuple(item.strip() for item in items if normal(item))[:n]


def normal(text: str) -> str:
    """Return the normalised form of a text: its letters and digits in lower case.

    Texts with the same normalised form count as the same text.
    """
    return _LETTERS.sub(" ", text).strip().casefold()


def _one_text(text: str) -> str:
    """Return a text without the JSON string or object around it, or the quotation mark before it if it is cut off.

    A line before the JSON that ends with a colon is no part of the text.
    """
    start = line.end() if (line := _BEFORE_JSON.match(text)) else 0
    if not text.startswith(('"', "{"), start):
        return text
    try:
        value, end = json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        return text[1:] if text.startswith('"') and text.count('"') == 1 else text
    if isinstance(value, dict):
        return _text_field(value) or next(iter(_json_items(text, nested=False) or ()), text)
    return value if not text[end:].strip() else text  # '"Yes", she said.' begins with a quotation


def _text_field(fields: dict[str, Any]) -> str | None:
    """Return the text in an object: the field with a usual name for it, or else the longest; None without strings."""
    strings = {name.casefold(): value for name, value in fields.items() if isinstance(value, str)}
    named = (strings[name] for name in _TEXT_FIELDS if name in strings)
    return next(named, max(strings.values(), key=len, default=None))


def _json_items(text: str, *, nested: bool) -> list[str] | None:
    """Return the strings in the first JSON list in the text; None if there is no list.

    From a truncated list, only the complete strings are returned. An object in the list is replaced by its text or, if
    `nested`, by the strings of the list inside it.
    """
    start = text.find("[")
    if start < 0 or not _LIST.match(text, start):
        return None
    decoder, place = json.JSONDecoder(strict=False), start + 1
    items: list[str] = []
    while match := _BETWEEN_ITEMS.match(text, place):
        try:
            item, place = decoder.raw_decode(text, match.end())
        except (json.JSONDecodeError, RecursionError):
            break
        if isinstance(item, str):
            items.append(item)
        elif listed := next((value for value in item.values() if nested and isinstance(value, list)), None):
            items += [value for value in listed if isinstance(value, str)]
        elif (inner := _text_field(item)) is not None:  # [{"text": "..."}, ...] is a common slip
            items.append(inner)
    return items


def _objects(text: str) -> Iterator[str]:
    """Yield each JSON object in the text as JSON.

    If an object contains a list of objects, these objects are yielded instead. Text that begins like an object but is
    not valid JSON is yielded unchanged, up to its first closing brace.
    """
    decoder, place = json.JSONDecoder(strict=False), text.find("{")
    while place >= 0:
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = text.find("}", place) + 1 or len(text)
            yield text[place:end]
        else:
            inner = [item for field in value.values() if isinstance(field, list) for item in field]
            objects = [item for item in inner if isinstance(item, dict)] or [value]
            yield from (json.dumps(item, ensure_ascii=False) for item in objects)
        place = text.find("{", end)


def _listed_items(text: str) -> list[str]:
    """Return the items of a numbered or bulleted list, without the text before it; empty if there is no list."""
    return [item.strip().strip('"') for item in _ITEM.split(text)[1:]]


def _lines(text: str) -> list[str]:
    """Return the lines that do not end like a sentence.

    If there is only one such line, the result is empty, since the line may be a refusal.
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.rstrip().endswith((".", ":", "!", "?"))]
    return lines if len(lines) > 1 else []
