"""The texts in a list or object of a model's reply, beside numbers, labels and whatever else stands in its fields."""

import re
from collections.abc import Mapping

from server.llm.loose_json import read_value

TEXT_FIELDS = ("text", "message", "content", "body")
"""Last words of the names of fields that have the text, whatever other fields there are."""

_ID = re.compile(r"\W*(?:[^\W\d_]+[\s_#:.-]*)?\d+\W*")
_NAME_WORD = re.compile(r"[^\W\d_A-Z]+|[A-Z]+(?![^\W\d_A-Z])|[A-Z][^\W\d_A-Z]*")
_OF_TEXTS = """
texts messages contents bodies items examples samples results outputs responses notes questions data list versions
variations
"""
_OF_OTHERS = """
id ids uid uuid index idx no nr num number count total n key label labels tag tags language lang locale type kind
category categories class topic topics subtopic subtopics area title name names subject role author writer style tone
sentiment status source model format length words keyword keywords keyphrase keyphrases phrases date time timestamp
description intent domain difficulty entities code codes metadata schema explanation analysis plan
"""
_OF_THOUGHTS = "reasoning thought thoughts thinking think rationale scratchpad cot"
_TEXTS_FIELDS, _OTHER_FIELDS, _THOUGHT_FIELDS = (
    frozenset(words.split()) for words in (_OF_TEXTS, _OF_OTHERS, _OF_THOUGHTS)
)


def texts_in(value: object, *, lists_first: bool = False, ids: bool = False) -> list[str]:
    """Return the texts in a list or object.

    Args:
        value: A value of JSON.
        lists_first: Whether the lists of an object count before its strings.
        ids: Whether a string that is a number, such as "note-7", counts, or a field such as "title" alone.
    """
    if isinstance(value, str):
        return texts_in_string(value) or ([value] if ids or not _ID.fullmatch(value) else [])
    if isinstance(value, list):
        return [text for item in value for text in texts_in(item, lists_first=ids, ids=ids)]
    return _texts_of_fields(value, lists_first=lists_first, ids=ids) if isinstance(value, Mapping) else []


def texts_in_string(string: str) -> list[str]:
    """Return the texts of a list or object that was written as a string."""
    return texts_in(read_value(string)) if string[:1] in ("[", "{") else []


def _texts_of_fields(fields: Mapping[str, object], *, lists_first: bool, ids: bool) -> list[str]:
    words = {name: [word.casefold() for word in _NAME_WORD.findall(name)] or [""] for name in fields}
    known = {name: value for name, value in fields.items() if not _THOUGHT_FIELDS.intersection(words[name])}
    strings = {name: value for name, value in known.items() if isinstance(value, str) and re.search(r"\w", value)}
    groups = {name: value for name, value in known.items() if isinstance(value, list | Mapping)}
    inner = {name: texts_in(value, lists_first=lists_first, ids=ids) for name, value in groups.items()}
    named = [text for field in TEXT_FIELDS for name, text in strings.items() if words[name][-1] == field]
    numbered = [name for name in known if re.search(r"\d\W*$", name)]
    stems = {tuple(words[name]) for name in numbered}
    plural = [text for name, texts in inner.items() if words[name][-1] in _TEXTS_FIELDS for text in texts]
    lists = [text for name, texts in inner.items() if words[name][-1] not in _OTHER_FIELDS for text in texts]
    main = [text for name, text in strings.items() if words[name][-1] not in _OTHER_FIELDS and not _ID.fullmatch(text)]
    if ids and (of_lists := [text for texts in inner.values() for text in texts]):
        return of_lists
    if len(numbered) > 1 and len(stems) == 1:
        return [text for name in numbered for text in texts_in(known[name], ids=ids)]
    if named:
        return named[:1]
    if plural or (lists_first and lists):
        return plural or lists
    if main:
        return [max(main, key=len)]
    rest = [text for text in strings.values() if ids or " " in text.strip()]
    return lists or ([max(rest, key=len)] if rest else [])
