"""Words of prompts for a task's kind of text, in the plural, and for its labels."""

import re

from server.domain import Task, Wording
from server.llm.parse import normal_letters

_HEAD_ENDS = re.compile(
    r",|\s+(?:that|which|who|whose|of|to|about|from|in|by|for|on|with|at|as|after|before|between|written|sent)\b"
)
_SIBILANT = re.compile(r"(?:s|x|z|ch|sh)$")
_NAMED = 5
_WORD = re.compile(r"\b[^\W\d]{3,}\b")
_VOWEL_Y = re.compile(r"[aeiou]y$")


def kinds_of(kind: str, wording: Wording) -> str:
    """Return the plural of a kind of text, for use within a sentence."""
    words = wording.plural or plural(kind)
    return words[:1].lower() + words[1:] if kind[:1].islower() else words


def repeats_name(label: str, description: str) -> bool:
    """Return whether the description of a label only repeats its name."""
    return normal_letters(description) == normal_letters(label.replace("_", " "))


def label_in_words(label: str, description: str) -> str:
    """Return a label in quotes, by its name and its description, as far as these are words and differ.

    A name without a word says nothing, such as "2.0" or "C34". Together the two say most: a description alone lacks
    the words that writers of such texts use, and a name alone is ambiguous.
    """
    name = label.replace("_", " ")
    if repeats_name(label, description) or not description:
        return f'"{name}"'
    return f'"{name}" ({description})' if _WORD.search(name) else f'"{description}"'


def advice_on_descriptions(task: Task) -> str:
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
