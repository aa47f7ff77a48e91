"""Forms of a completion's prompt, as data: the words and characters around each text, and how a text ends.

    fields               headings               quoted
    Kind of text: note.  Notes, about "falls":             Note, about "falls": "He fell."
    Topic: falls         - He fell.                       Note, about "burns": "
    Text: He fell.       Notes, about "burns":
    Topic: burns         -
    Text:

The plural comes from the task (`Wording.plural`). Which form is best differs between tasks, so `llm=smollm2` has a
persona for each form, and the hospitals' answers decide which persona writes more texts.
"""

import re
from dataclasses import dataclass

from common.phrases import capital
from server.domain import Task, Wording
from server.llm.base import Request
from server.llm.parse import normal

_HEAD_ENDS = re.compile(
    r",|\s+(?:that|which|who|whose|of|to|about|from|in|by|for|on|with|at|as|after|before|between|written|sent)\b"
)
_SIBILANT = re.compile(r"(?:s|x|z|ch|sh)$")
_NAMED = 5
_WORD = re.compile(r"\b[^\W\d]{3,}\b")
_VOWEL_Y = re.compile(r"[aeiou]y$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Templates for one item of a prompt: heading, opening, a text, closing.

    Placeholders are {kind} and {kinds}, capitalised; {term}, the meaning of a label; {about}, the topic in words;
    {topic}; and {noun}, "Text" or "Subtopic".

    Attributes:
        heading: Words before a text that has a topic.
        untitled: Words before a text that has no topic.
        opening: Characters directly before each text.
        closing: Characters directly after each text; if empty, a text ends at its line break.
        described: Whether the first line describes the kind of text, which the headings do not name.
        grouped: Whether consecutive texts with equal headings share one heading.
    """

    heading: str
    untitled: str = ""
    opening: str = ""
    closing: str = ""
    described: bool = False
    grouped: bool = False

    def title(self, request: Request, topic: str) -> str:
        """Return the words before a text of this topic; an empty topic means no topic."""
        term = request.wording.label
        kind, kinds = ("subtopic", "subtopics") if request.phrases else (request.task_kind, plural_of(request))
        named = topic.replace('"', "'")
        return (self.heading if topic else self.untitled).format(
            kind=capital(kind),
            kinds=capital(kinds),
            about=f'{"about" if term == "label" else term} "{named}"',
            term="Topic" if term == "label" else capital(term),
            topic=topic,
        )

    def item(self, request: Request, text: str) -> str:
        """Return a text as a list item, with the opening characters before it but without the closing ones."""
        opening = self.opening.format(noun="Subtopic" if request.phrases else "Text")
        return opening + (text.replace(self.closing, "'") if self.closing else text)


FORMS = {
    "fields": Form(heading="{term}: {topic}\n", opening="{noun}: ", described=True),
    "headings": Form(heading="{kinds}, {about}:\n", untitled="{kinds}:\n", opening="- ", grouped=True),
    "quoted": Form(heading="{kind}, {about}: ", untitled="{kind}: ", opening='"', closing='"'),
}
"""Prompt forms, keyed by their names in `completion.form`."""


def plural_of(request: Request) -> str:
    """Return the plural of the task's kind of text: `task.wording.plural` or, if that is empty, an English plural."""
    return request.wording.plural or plural(request.task_kind)


def kinds_of(kind: str, wording: Wording) -> str:
    """Return the plural of a kind of text, for use within a sentence."""
    words = wording.plural or plural(kind)
    return words[:1].lower() + words[1:] if kind[:1].islower() else words


def repeats_name(label: str, description: str) -> bool:
    """Return whether the description of a label only repeats its name."""
    return normal(description) == normal(label.replace("_", " "))


def label_in_words(label: str, description: str) -> str:
    """Return a label in quotes, by its name and its description, as far as these are words and differ.

    A name without a word says nothing, such as "2.0" or "C34". Together the two say most: a description alone lacks
    the words that writers of such texts use, and a name alone is ambiguous.
    """
    name = label.replace("_", " ")
    if repeats_name(label, description) or not description:
        return f'"{name}"'
    return f'"{name}" ({description})' if _WORD.search(name) else f'"{description}"'


def undescribed(task: Task) -> str:
    """Return advice on labels whose descriptions only repeat their names, or are numbers; empty if there are none."""
    names = [
        label for label, words in task.labels.items() if repeats_name(label, words) or not any(map(str.isalpha, words))
    ]
    if not names or not task.labelled:
        return ""
    where = "task.sections" if task.sectioned else "task.labels"
    return (
        f"prompts say no more about {len(names)} of {len(task.labels)} labels than a name or a number: "
        f"{', '.join(names[:_NAMED])}{', …' * (len(names) > _NAMED)}; "
        f"describe them: {where}={{{names[0]}: what such texts are about, …}}"
    )


def plural(kind: str) -> str:
    """Return the English plural of a kind of text. The word before a clause, "of", "to" or the like takes the ending.

    Irregular nouns, and kinds in other languages, need the setting `task.wording.plural`.
    """
    end = match.start() if (match := _HEAD_ENDS.search(kind)) and match.start() else len(kind)
    noun, rest = kind[:end], kind[end:]
    if noun.endswith("y") and not _VOWEL_Y.search(noun):
        return f"{noun[:-1]}ies{rest}"
    return f"{noun}{'es' if _SIBILANT.search(noun) else 's'}{rest}"
