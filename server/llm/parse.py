"""Conversion of a completion into the texts or phrases that its prompt asked for."""

import re
from collections.abc import Mapping

from server.llm.loose_json import found_values, read_string, read_value
from server.llm.reasoning import answer_in

NUMBERED = r"(?:text|example|note|version|sample|message|item|customer|client|user|patient|question|query)"
"""Nouns that models write before the number of a text."""

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

_ITEM = re.compile(
    r"^(?P<indent>[ \t]*)(?:[#>]{1,6}[ \t]+)?(?:\*\*|__)?"
    rf"(?:(?P<number>(?:\w+[ \t]+){{0,2}}{NUMBERED}[ \t]+#?\d{{1,3}}(?:[.):]|(?=[*_ \t]*$))|\(?\d{{1,3}}[.):])"
    r"|(?P<bullet>[-*•–]))(?:\*\*|__)?:?(?:[ \t]+|$)",
    re.MULTILINE | re.IGNORECASE,
)
_FENCE = re.compile(r"^[ \t]*```+[\w-]*[ \t]*\n?|```+[ \t]*$", re.MULTILINE)
_RULED_LINE = re.compile(r"^[ \t]*(?:-{3,}|\*{3,}|={3,}|_{3,}|#{3,})[ \t]*$", re.MULTILINE)
_ELEMENT = re.compile(r"^[ \t]*<(\w+)(?:\s[^<>]*)?>(.*?)</\1>[ \t]*$", re.MULTILINE | re.DOTALL)
_FIRST_LINE = re.compile(r"\A[^\n]*:[ \t]*\n[ \t]*\n")
_PARAGRAPHS = re.compile(r"\n[ \t]*\n")
_BEFORE_STRING = re.compile(r"[^\n]*:\s*\n\s*(?=\")")
_REST_OF_LINE = re.compile(r"[ \t]*(?:\n|\Z)")
_PLAIN_LIST = re.compile(r"\s*\[([^][{}\"\n]+)\]\.?\s*")
_NO_LETTERS = re.compile(r"\W+")
_AROUND = " \t\"“”',;."
_LONGEST_PHRASE = 8  # words; a longer item of a list of phrases counts as prose
_FEWEST_PARAGRAPHS = 3  # a refusal may have two
_FEWEST_PLAIN = 5  # items of a list without quotation marks; a refusal in brackets may have four


def parse(completion: str, n: int, *, phrases: bool = False, cut: bool = False) -> tuple[str, ...]:
    """Extract at most `n` texts or phrases from a completion.

    Reasoning is no part of the answer (`reasoning.py`), nor is what stands outside a Markdown fence. If one text was
    requested, the answer is the text, unless it is a list, string or object with the text. If the completion was `cut`
    off at the limit of its length, there is no such text.
    Several texts are read from lists or objects in JSON or Python (`loose_json.py`), or else from a numbered or
    bulleted list, from fences, elements, or parts between ruled lines, or from `n` paragraphs. In an object, the text
    is the field "text", "message", "content" or "body", or else the longest string that is no label, number or the
    like; an object with several texts has them in its lists or in numbered fields. Phrases may also stand in plain
    lines, or be a list without quotation marks. Blank items, prose in place of several texts, and repeated phrases are
    dropped; `clean` handles all other defects of a text.
    """
    answer = answer_in(completion)
    pieces = _FENCE.split(answer)
    fenced = [piece.strip() for piece in pieces[1::2] if piece.strip()]
    if n == 1 and not phrases:
        bare = fenced[0] if fenced else "".join(pieces)
        items = _one_text(bare.strip(), cut=cut)
    else:
        bare = "\n".join(fenced) if fenced else "".join(pieces)
        items = _texts_of_values(bare, n, phrases=phrases)
        if not items:
            items = (fenced[1:] and fenced) or _listed_items(answer) or _parts(bare, n)
            items = items[: len(items) - cut] or (_plain_phrases(bare, n) if phrases and not (cut and n == 1) else [])
    if phrases:
        items = [item.strip(_AROUND) for item in items if len(item.split()) <= _LONGEST_PHRASE]
        items = list({normal_letters(item): item for item in reversed(items)}.values())[::-1]
    return tuple(item.strip() for item in items if normal_letters(item))[:n]


def normal_letters(text: str) -> str:
    """Return the normalised form of a text: its letters and digits in lower case.

    Texts with the same normalised form count as the same text.
    """
    return _NO_LETTERS.sub(" ", text).strip().casefold()


def without_surrogates(text: str) -> str:
    """Return the text with a question mark for each half of a surrogate pair, which no file can hold.

    A language model may write one, and an escape in JSON can express it.
    """
    return text.encode(errors="replace").decode()


def _one_text(text: str, *, cut: bool) -> list[str]:
    """Return a list of the one text, or an empty list.

    A list, object or string counts if it is the whole answer, or after a line that ends with a colon.
    """
    for container in found_values(text):
        before, texts = text[: container.start].strip(), _texts_in(container.value)
        ends = _REST_OF_LINE.match(text, container.end)
        follows = container.own_line or (before.endswith(":") and "\n" not in before)
        if texts and (not before or (follows and ends)):
            return texts[:1]
        if not before and ends and not text[container.end :].strip():
            return []
    if cut:
        return []
    start = line.end() if (line := _BEFORE_STRING.match(text)) else 0
    if (string := read_string(text[start:].strip())) is not None and text.startswith('"', start):
        return _texts_in_string(string)[:1] or [string]
    return [text[1:] if text.startswith('"') and text.count('"') == 1 else text]


def _texts_of_values(text: str, n: int, *, phrases: bool) -> list[str]:
    """Return the texts in the lists and objects.

    One with all texts counts alone, the last if there are several. Those on lines of their own count before others, of
    which only the largest counts: a sentence may have brackets in it.
    """
    values = list(found_values(text))
    lists_first = phrases or sum(isinstance(container.value, Mapping) for container in values) == 1
    read = [(container, _texts_in(container.value, lists_first=lists_first, ids=phrases)) for container in values]
    own_line = [texts for container, texts in read if container.own_line and texts]
    if complete := [texts for texts in own_line if len(texts) >= n]:
        return complete[-1]
    if own_line:
        return [item for texts in own_line for item in texts]
    if not phrases and len(strings := _string_lines(text)) > 1:
        return strings
    inside = [(len(texts), at) for at, (_, texts) in enumerate(read) if texts]
    if not inside:
        return []
    container, texts = read[max(inside)[1]]
    items = list(_ITEM.finditer(text))
    is_in_an_item = len(items) > 1 and items[0].start() < container.start
    return [] if is_in_an_item else texts


def _string_lines(text: str) -> list[str]:
    """Return the strings if each line is one, but for a first line that ends with a colon; else an empty list."""
    lines = [line.strip().rstrip(",") for line in text.splitlines() if line.strip()]
    strings = [read_string(line) for line in lines[bool(lines) and lines[0].endswith(":") :]]
    return [string for string in strings if string is not None] if None not in strings else []


def _listed_items(text: str) -> list[str]:
    """Return the items of a numbered or bulleted list, without the text before and after it; empty if there is none.

    Marks of another kind than the first, or further inside, belong to the items.
    """
    marks = list(_ITEM.finditer(_FENCE.sub("", text)))
    if not marks:
        return []
    text, first = marks[0].string, marks[0]
    marks = [
        mark
        for mark in marks
        if mark["bullet"] == first["bullet"] and len(mark["indent"].expandtabs()) <= len(first["indent"].expandtabs())
    ]
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    items = [text[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)]
    if len(items) > 1 and not any(_PARAGRAPHS.search(item) for item in items[:-1]):
        items[-1] = _PARAGRAPHS.split(items[-1], maxsplit=1)[0]
    return [item.strip('"') for item in items]


def _parts(text: str, n: int) -> list[str]:
    """Return elements such as "<text>...</text>", or parts between ruled lines, or paragraphs if there are `n`."""
    elements = _ELEMENT.findall(text)
    if len(elements) > 1 and len({name for name, _ in elements}) == 1:
        return [inner for _, inner in elements]
    text = _FIRST_LINE.sub("", text)
    split = [_RULED_LINE.split(text), _PARAGRAPHS.split(text)]
    ruled, paragraphs = ([part for part in map(str.strip, parts) if part and part[-1] != ":"] for parts in split)
    if len(ruled) > 1:
        return ruled
    return paragraphs if len(paragraphs) == n >= _FEWEST_PARAGRAPHS else []


def _plain_phrases(text: str, n: int) -> list[str]:
    """Return the items of a list without quotation marks that is the whole text, or the lines that are no sentences.

    Where several were requested, one line alone may refuse.
    """
    if (whole := _PLAIN_LIST.fullmatch(text)) and len(items := whole[1].split(",")) >= _FEWEST_PLAIN:
        return items
    lines = [line for line in text.splitlines() if line.strip() and not line.rstrip().endswith((".", ":", "!", "?"))]
    return lines if n == 1 or len(lines) > 1 else []


def _texts_in(value: object, *, lists_first: bool = False, ids: bool = False) -> list[str]:
    """Return the texts in a list or object.

    Args:
        value: A value of JSON.
        lists_first: Whether the lists of an object count before its strings.
        ids: Whether a string that is a number, such as "note-7", counts, or a field such as "title" alone.
    """
    if isinstance(value, str):
        return _texts_in_string(value) or ([value] if ids or not _ID.fullmatch(value) else [])
    if isinstance(value, list):
        return [text for item in value for text in _texts_in(item, lists_first=ids, ids=ids)]
    return _texts_of_fields(value, lists_first=lists_first, ids=ids) if isinstance(value, Mapping) else []


def _texts_in_string(string: str) -> list[str]:
    """Return the texts of a list or object that was written as a string."""
    return _texts_in(read_value(string)) if string[:1] in ("[", "{") else []


def _texts_of_fields(fields: Mapping[str, object], *, lists_first: bool, ids: bool) -> list[str]:
    words = {name: [word.casefold() for word in _NAME_WORD.findall(name)] or [""] for name in fields}
    known = {name: value for name, value in fields.items() if not _THOUGHT_FIELDS.intersection(words[name])}
    strings = {name: value for name, value in known.items() if isinstance(value, str) and re.search(r"\w", value)}
    groups = {name: value for name, value in known.items() if isinstance(value, list | Mapping)}
    inner = {name: _texts_in(value, lists_first=lists_first, ids=ids) for name, value in groups.items()}
    named = [text for field in TEXT_FIELDS for name, text in strings.items() if words[name][-1] == field]
    numbered = [name for name in known if re.search(r"\d\W*$", name)]
    stems = {tuple(words[name]) for name in numbered}
    plural = [text for name, texts in inner.items() if words[name][-1] in _TEXTS_FIELDS for text in texts]
    lists = [text for name, texts in inner.items() if words[name][-1] not in _OTHER_FIELDS for text in texts]
    main = [text for name, text in strings.items() if words[name][-1] not in _OTHER_FIELDS and not _ID.fullmatch(text)]
    if ids and (of_lists := [text for texts in inner.values() for text in texts]):
        return of_lists
    if len(numbered) > 1 and len(stems) == 1:
        return [text for name in numbered for text in _texts_in(known[name], ids=ids)]
    if named:
        return named[:1]
    if plural or (lists_first and lists):
        return plural or lists
    if main:
        return [max(main, key=len)]
    rest = [text for text in strings.values() if ids or " " in text.strip()]
    return lists or ([max(rest, key=len)] if rest else [])
