"""Conversion of a request into prompts for chat models, and of a completion into texts.

The contrastive prompt follows the steps of WASP's prompt (section 4.6 and table 7), in the same order but in our own
wording.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace

from common.phrases import capital
from server.llm.base import Request
from server.spans import words as words_of

WORDING = 3
"""Version of the wording. It is part of a chat model's identity, so increase it with every change to a prompt."""

_SYSTEM = (
    "You write synthetic texts that serve as training data for a small classifier. You never reproduce a text that you "
    "were shown or remember, and you never use the name, address, number or date of a real person. "
    "You answer with data only."
)
_MIDWAY = (
    "better than the strong ones, and further from the weak ones than they are, so that the strong ones come to lie "
    "halfway between the weak ones and yours"
)
_ITEM = re.compile(r"^\s*(?:\d{1,3}[.):]|[-*•])\s+", re.MULTILINE)
_FENCE = re.compile(r"```[\w-]*\n?")
_LETTERS = re.compile(r"\W+")
_AROUND = " \t\"',;."
_LONGEST_PHRASE = 8  # words; a longer item of a list of phrases counts as prose


def render(request: Request) -> tuple[str, str]:
    """Return the (system, user) prompts for one request; equal requests give equal prompts.

    The system prompt contains everything that the requests of a run have in common, such as the task, so that a
    provider may cache it; it contains labels only if the prompt may name one.
    """
    if request.phrases:
        parts = [_subtopics(request), _format(request.n, "phrase")]
    else:
        answer = _objects_format(request.n) if request.structure else _format(request.n, "text")
        parts = [*_exemplars(request), *_so_far(request), *_instruction(request), answer]
    return "\n\n".join([_SYSTEM, _task(request)]), "\n\n".join(parts)


def parse(completion: str, n: int, *, phrases: bool = False, objects: bool = False) -> tuple[str, ...]:
    """Extract at most `n` texts, phrases, or objects (as unchecked text) from a completion.

    The completion may be a JSON list or a numbered or bulleted list; of a truncated JSON list, only the complete items
    are used. For phrases, a list inside an object and plain lines are accepted too. Blank items, prose that is not a
    list, and repeated phrases are dropped; `clean` handles all other defects of a text.
    """
    bare = _FENCE.sub("", completion).strip()
    if objects:
        return tuple(_objects(bare))[:n]
    items = _json_items(bare, nested=phrases)
    if items is None:
        items = _listed_items(bare) or (_lines(bare) if phrases else [])
    if phrases:
        items = [item.strip(_AROUND) for item in items if len(item.split()) <= _LONGEST_PHRASE]
        items = list({normal(item): item for item in reversed(items)}.values())[::-1]
    return tuple(item.strip() for item in items if normal(item))[:n]


def _task(request: Request) -> str:
    """Return the part of the prompt that describes what all texts of the task have in common."""
    wording = request.wording
    lines = [f"Kind of text: {request.task_kind}."]
    if wording.writer:
        lines.append(f"Written by: {wording.writer}.")
    if wording.style:
        lines.append(f"Manner of writing: {wording.style}.")
    if request.label is not None:
        labels = "; ".join(_label_text(*label) for label in request.labels)
        lines.append(f"{capital(wording.label)} of each is {'several' if request.more else 'one'} of: {labels}.")
    if structure := request.structure:
        lines.append(f"Each is one JSON object that follows this JSON Schema: {structure.schema}")
        lines.append(
            f"Its field {json.dumps(structure.text_field)} has the text itself; the other fields agree with it."
        )
    if marks := request.marks:
        types = "; ".join(f"<{name}> ({description})" for name, description in marks.types)
        lines.append(f"In each text all that is one of these stands between tags: {types}.")
        lines.append("There are no other tags, each is closed, and none stands within another.")
        lines.append(f"An example of the tags, not of the content: {marks.shown_example}")
    return "\n".join(lines)


def _exemplars(request: Request) -> list[str]:
    """Return the part of the prompt with exemplars or source texts."""
    kind = request.task_kind
    if request.bad:
        return [_numbered(f"Weak {kind}", request.bad), _numbered(f"Strong {kind}", request.good)]
    if request.good_must:
        pairs = zip(request.good_must, request.good, strict=True)
        examples = [f"Keyphrases: {'; '.join(phrases)}\n{capital(kind)}:\n{text}" for phrases, text in pairs]
        return [_numbered("Example", tuple(examples))]
    if request.good:
        return [_numbered(capital(kind), request.good)]
    if len(request.source) == 1:
        if request.abstract:
            return [f"Abstracted {kind}:\n{request.source[0]}"]
        return [f"Original {kind}:\n{_masked(request) if request.blanks else request.source[0]}"]
    return [_numbered(f"Parent {kind}", request.source)] if request.source else []


def _so_far(request: Request) -> list[str]:
    """Return the part of the prompt with the earlier sections of the text that is being written."""
    if not request.before:
        return []
    return [f"The text so far, which the new section neither repeats nor contradicts:\n{request.before}"]


def _instruction(request: Request) -> list[str]:
    """Return the instruction, followed by the conditions for each new text."""
    kind, many = request.task_kind, f"{request.n} new" if request.n > 1 else "1 new"
    if request.bad:
        label = "Keep to the label given below, and stay clear." if request.label is not None else "Stay clear."
        steps = [
            "Work in this order.",
            "1. Find out what sets the strong examples apart from the weak ones.",
            f"2. Write {many} of the same kind ({kind}) that go further in that direction: {_MIDWAY}.",
            f"3. {label}",
            "4. Vary: no wording or order of ideas taken over from the examples, and none shared among yours.",
        ]
        task = "\n".join(steps)
    elif request.good_must:
        task = (
            f"The examples show how such a text looks and how it takes up its keyphrases. Write {many} ({kind}) in "
            "that manner around the keyphrases below, with nothing else taken over from the examples."
        )
    elif request.good:
        task = f"Write {many} of the kind above ({kind}), each as they could be, each worded unlike them."
    elif request.blanks:
        task = (
            f"Each ____ stands for missing words. Write the {kind} out in full, {request.n} times, filled differently."
        )
    elif request.abstract and request.source:
        task = (
            f"Use the abstract to infer the original meaning, and write {many} of this kind ({kind}), realistic and in "
            "full, that it could be the abstract of."
        )
    elif request.abstract:
        task = (
            f"Write {many} abstract{'s' * (request.n > 1)} of texts of this kind: {kind}. Each says what one such text "
            "is about, without names, figures or other details, and they are as unlike each other as real texts are."
        )
    elif len(request.source) == 1:
        versions = "versions" if request.n > 1 else "version"
        task = f"Say the same in other words and, where it reads well, in another order: {many} {versions}."
    elif request.source:
        task = (
            f"Write {many} of the same kind ({kind}), each joining content of the first parent with that of the second "
            "in one coherent text that repeats neither."
        )
    else:
        task = f"Write {many} of this kind: {kind}. Make them as unlike each other as real ones are."
    return [task, *([conditions] if (conditions := _conditions(request)) else [])]


def _conditions(request: Request) -> str:
    lines = []
    if request.label is not None:
        term = request.wording.label
        lines.append(f"{capital(term)} of each: {' and '.join(_label_text(*label) for label in request.requested)}.")
        if request.more:
            lines.append(f"It shows all {len(request.requested)} together, and no other {term}. Do not write them out.")
        elif len(request.labels) > 1:
            lines.append(f"It must not be taken for another {term}. Do not write the {term} itself as a heading.")
    if request.attribute is not None:
        lines.append(f"About: {request.attribute}.")
    if request.must:
        lines.append(f"Each contains, word for word: {'; '.join(request.must)}.")
    if request.words is not None:
        lines.append(f"Length of each: about {request.words} words.")
    return "\n".join(lines)


def _subtopics(request: Request) -> str:
    """Return the prompt for a list of phrases."""
    kind, term = request.task_kind, request.wording.label
    about = f"what a text of this kind ({kind}) may be about"
    if request.label is None:
        lines = [f"Name {request.n} different subtopics of {about}."]
    else:
        label = _label_text(request.label, request.description)
        lines = [f"Name {request.n} different subtopics of {about} when its {term} is: {label}."]
        if len(request.labels) > 1:
            lines.append(f"None of them fits as well where the {term} is another.")
    if request.attribute is not None:
        lines.append(f"All of them in connection with: {request.attribute}.")
    lines.append("Each is a phrase of one to four words, specific, and no other one in different words.")
    return "\n".join(lines)


def _label_text(label: str, description: str) -> str:
    """Return a label with its description, unless the description only repeats the label."""
    return label if normal(label.replace("_", " ")) == normal(description) else f"{label} ({description})"


def _format(n: int, item: str) -> str:
    count = "one string" if n == 1 else f"{n} strings"
    return f"Answer with a JSON list of {count}, one {item} in each, and nothing before or after it."


def _objects_format(n: int) -> str:
    count = "one object" if n == 1 else f"{n} objects"
    return f"Answer with a JSON list of {count} that follow the JSON Schema, and nothing before or after it."


def _numbered(title: str, texts: tuple[str, ...]) -> str:
    return "\n\n".join(f"{title} {number}:\n{text}" for number, text in enumerate(texts, 1))


def _masked(request: Request) -> str:
    """Return the source with a fraction `blanks` of its words replaced by blanks.

    The blanks are evenly spaced and shifted by the request's seed, not drawn at random, so that equal requests give
    equal prompts. In a structured text, only the text field gets blanks.
    """
    source, structure = request.source[0], request.structure
    if structure and (fields := structure.fields(source)):
        text = structure.text_field
        return structure.canonical(fields | {text: _masked(replace(request, source=(fields[text],), structure=None))})
    words = [word.group() for word in words_of(source)] if request.marks else source.split(" ")
    shift = request.seed % 997 / 997
    masked = [
        int((place + shift + 1) * request.blanks) > int((place + shift) * request.blanks) for place in range(len(words))
    ]
    return re.sub(r"____(?: ____)+", "____", " ".join("____" if m else w for w, m in zip(words, masked, strict=True)))


def _json_items(text: str, *, nested: bool) -> list[str] | None:
    """Return the strings in the first JSON list in the text; None if there is no list.

    From a truncated list, only the complete strings are returned. An object in the list is replaced by its first string
    or, if `nested`, by the strings of the list inside it.
    """
    start = text.find("[")
    if start < 0 or not re.match(r"\[\s*[\"{\]]", text[start:]):
        return None
    decoder, place = json.JSONDecoder(strict=False), start + 1
    items: list[str] = []
    while match := re.compile(r"[\s,]*(?=[\"{])").match(text, place):
        try:
            item, place = decoder.raw_decode(text, match.end())
        except (json.JSONDecodeError, RecursionError):
            break
        if isinstance(item, dict):  # [{"text": "..."}, ...] is a common slip
            listed = next((value for value in item.values() if nested and isinstance(value, list)), None)
            strings = [value for value in listed or item.values() if isinstance(value, str)]
            items += strings if listed else strings[:1]
        else:
            items.append(item)
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


def normal(text: str) -> str:
    """Return the normalised form of a text: its letters and digits in lower case.

    Texts with the same normalised form count as the same text.
    """
    return _LETTERS.sub(" ", text).strip().casefold()
