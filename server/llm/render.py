"""A request in words, for every chat model, and a completion back into texts.

The contrastive wording asks for what WASP asks for (section 4.6 and table 7), in that order, in words of our own.
"""

import json
import re

from server.llm.base import Request

WORDING = 3
"""Number of this wording. It is part of a chat model's identity, so raise it with every change of a prompt."""

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
_LONGEST_PHRASE = 8  # words; a longer item of a list of phrases is prose


def render(request: Request) -> tuple[str, str]:
    """The (system, user) prompts of one request. Pure: equal requests give equal prompts.

    The system prompt holds all that requests of a run have in common, the task among it, so that a provider may cache
    it; labels only where the prompt may name one.
    """
    if request.phrases:
        parts = [_subtopics(request), _format(request.n, "phrase")]
    else:
        parts = [*_shown(request), *_wanted(request), _format(request.n, "text")]
    return "\n\n".join([_SYSTEM, _task(request)]), "\n\n".join(parts)


def parse(completion: str, n: int, *, phrases: bool = False) -> tuple[str, ...]:
    """At most `n` texts, or phrases, out of a completion, whatever the model wrapped them in.

    A JSON list is preferred, one that was cut off gives its complete items, and a numbered or bulleted list will do;
    for phrases also a list inside an object, and bare lines. Dropped are blanks, prose that is no list, and phrases
    that come twice; what else may be wrong with a text is `clean`'s.
    """
    bare = _FENCE.sub("", completion).strip()
    items = _json_items(bare, nested=phrases)
    if items is None:
        items = _listed_items(bare) or (_lines(bare) if phrases else [])
    if phrases:
        items = [item.strip(_AROUND) for item in items if len(item.split()) <= _LONGEST_PHRASE]
        items = list({normal(item): item for item in reversed(items)}.values())[::-1]
    return tuple(item.strip() for item in items if normal(item))[:n]


def _task(request: Request) -> str:
    """What all texts of the task have in common."""
    said = request.wording
    lines = [f"Kind of text: {request.task_kind}."]
    if said.writer:
        lines.append(f"Written by: {said.writer}.")
    if said.style:
        lines.append(f"Manner of writing: {said.style}.")
    if request.label is not None:
        called = "; ".join(_called(*label) for label in request.labels)
        lines.append(f"{_begun(said.label)} of each is one of: {called}.")
    return "\n".join(lines)


def _shown(request: Request) -> list[str]:
    """What the model is to look at before it writes."""
    kind = request.task_kind
    if request.bad:
        return [_numbered(f"Weak {kind}", request.bad), _numbered(f"Strong {kind}", request.good)]
    if request.good_must:
        pairs = zip(request.good_must, request.good, strict=True)
        shown = [f"Keyphrases: {'; '.join(own)}\n{_begun(kind)}:\n{text}" for own, text in pairs]
        return [_numbered("Example", tuple(shown))]
    if request.good:
        return [_numbered(_begun(kind), request.good)]
    if len(request.source) == 1:
        if request.abstract:
            return [f"Abstracted {kind}:\n{request.source[0]}"]
        return [f"Original {kind}:\n{_masked(request) if request.blanks else request.source[0]}"]
    return [_numbered(f"Parent {kind}", request.source)] if request.source else []


def _wanted(request: Request) -> list[str]:
    """What to do with it, then what holds for each new text."""
    kind, many = request.task_kind, f"{request.n} new" if request.n > 1 else "1 new"
    if request.bad:
        steps = [
            "Work in this order.",
            "1. Find out what sets the strong examples apart from the weak ones.",
            f"2. Write {many} of the same kind ({kind}) that go further in that direction: {_MIDWAY}.",
            "3. Keep to the label given below, and stay clear.",
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
        said = request.wording.label
        lines.append(f"{_begun(said)} of each: {_called(request.label, request.description)}.")
        if len(request.labels) > 1:
            lines.append(f"It must not be taken for another {said}. Do not write the {said} itself as a heading.")
    if request.attribute is not None:
        lines.append(f"About: {request.attribute}.")
    if request.must:
        lines.append(f"Each contains, word for word: {'; '.join(request.must)}.")
    if request.words is not None:
        lines.append(f"Length of each: about {request.words} words.")
    return "\n".join(lines)


def _subtopics(request: Request) -> str:
    """The prompt for a list of phrases."""
    kind, said = request.task_kind, request.wording.label
    about = f"what a text of this kind ({kind}) may be about"
    if request.label is None:
        lines = [f"Name {request.n} different subtopics of {about}."]
    else:
        called = _called(request.label, request.description)
        lines = [f"Name {request.n} different subtopics of {about} when its {said} is: {called}."]
        if len(request.labels) > 1:
            lines.append(f"None of them fits as well where the {said} is another.")
    if request.attribute is not None:
        lines.append(f"All of them in connection with: {request.attribute}.")
    lines.append("Each is a phrase of one to four words, specific, and no other one in different words.")
    return "\n".join(lines)


def _called(label: str, description: str) -> str:
    """A label with its description, unless that only repeats it."""
    return label if normal(label.replace("_", " ")) == normal(description) else f"{label} ({description})"


def _begun(words: str) -> str:
    """Words as a line begins with them: "ECG report" keeps its capitals."""
    return words[:1].upper() + words[1:]


def _format(n: int, item: str) -> str:
    count = "one string" if n == 1 else f"{n} strings"
    return f"Answer with a JSON list of {count}, one {item} in each, and nothing before or after it."


def _numbered(title: str, texts: tuple[str, ...]) -> str:
    return "\n\n".join(f"{title} {number}:\n{text}" for number, text in enumerate(texts, 1))


def _masked(request: Request) -> str:
    """The source with its share of words blanked: evenly spread, shifted by the seed, so that rendering stays pure."""
    words = request.source[0].split(" ")
    shift = request.seed % 997 / 997
    masked = [
        int((place + shift + 1) * request.blanks) > int((place + shift) * request.blanks) for place in range(len(words))
    ]
    return re.sub(r"____(?: ____)+", "____", " ".join("____" if m else w for w, m in zip(words, masked, strict=True)))


def _json_items(text: str, *, nested: bool) -> list[str] | None:
    """The strings of the first JSON list in the text, the complete ones if it breaks off; None if there is no list.

    Of an object in the list counts its first string or, where `nested`, what its own list holds if it has one.
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


def _listed_items(text: str) -> list[str]:
    """The items of a numbered or bulleted list, less what introduces it. Other prose may be a refusal: no text."""
    return [item.strip().strip('"') for item in _ITEM.split(text)[1:]]


def _lines(text: str) -> list[str]:
    """Bare lines, at least two that are no sentences: one alone may be a refusal."""
    lines = [line for line in text.splitlines() if line.strip() and not line.rstrip().endswith((".", ":", "!", "?"))]
    return lines if len(lines) > 1 else []


def normal(text: str) -> str:
    """Letters and digits alone, in one case: what makes two texts the same."""
    return _LETTERS.sub(" ", text).strip().casefold()
