"""Closed questions about the form of a text, each answered by a public rule that depends only on that text.

The rules are part of this program: a coordinator chooses which questions it asks, and can neither change a rule nor add
a question. In a text of more than 4,096 characters each rule reads only the first and the last 2,048. Its time depends
only on the number of characters read, since otherwise the time of an answer would depend on the records. The rule about
grammatical person recognises English pronouns; in other languages its answer is "none".
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

_READ_CHARACTERS = 4096
_LETTERS = re.compile(r"[a-z]+")
_CAPITALS = re.compile(r"\b[A-Z]{2,5}\b")
_AFTER_THE_END = " \t\r\n\"')]}»”’"
_PERSONS = tuple(
    frozenset(pronouns.split())
    for pronouns in (
        "i me my mine myself we us our ours ourselves",
        "you your yours yourself yourselves",
        "he him his himself she her hers herself they them their theirs themselves",
    )
)
_ENDINGS = "?!.:"

LENGTHS = (5, 10, 15, 20, 30, 50, 80, 120)
"""Minimum lengths, in words, for the answers to the question `words`, from its second answer on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question with its possible answers.

    Attributes:
        name: Name in specifications and files.
        answers: The possible answers, of which a text has exactly one.
        rule: Function from a text to the index of its answer in `answers`.
    """

    name: str
    answers: tuple[str, ...]
    rule: Callable[[str], int]


def _length(text: str) -> int:
    return bisect_right(LENGTHS, len(text.split()))


def _sentences(text: str) -> int:
    return bisect_right((2, 3, 5, 9), sum(word[-1] in ".!?" for word in text.split()))


def _person(text: str) -> int:
    used = set(_LETTERS.findall(text.lower()))
    return next((person for person, pronouns in enumerate(_PERSONS) if used & pronouns), len(_PERSONS))


def _numbers(text: str) -> int:
    return bisect_right((1, 3), sum(any(map(str.isdigit, word)) for word in text.split()))


def _abbreviations(text: str) -> int:
    return bisect_right((1, 3), len(_CAPITALS.findall(text)))


def _ending(text: str) -> int:
    last = text.rstrip(_AFTER_THE_END)[-1:]
    return _ENDINGS.index(last) if last and last in _ENDINGS else len(_ENDINGS)


QUESTIONS = (
    Question(
        name="words",
        answers=(
            f"under {LENGTHS[0]}",
            *(f"{low} to {high - 1}" for low, high in pairwise(LENGTHS)),
            f"{LENGTHS[-1]} or more",
        ),
        rule=_length,
    ),
    Question(
        name="sentences",
        answers=("none or 1", "2", "3 or 4", "5 to 8", "9 or more"),
        rule=_sentences,
    ),
    Question(
        name="person",
        answers=("I or we", "you", "he, she or they", "none"),
        rule=_person,
    ),
    Question(
        name="numbers",
        answers=("none", "1 or 2", "3 or more"),
        rule=_numbers,
    ),
    Question(
        name="abbreviations",
        answers=("none", "1 or 2", "3 or more"),
        rule=_abbreviations,
    ),
    Question(
        name="ending",
        answers=("?", "!", ".", ":", "another, or none"),
        rule=_ending,
    ),
)
"""All questions, in the order of their coordinates in an answer."""


def answers(questions: Sequence[Question], texts: Sequence[str]) -> NDArray[np.int64]:
    """Return the index of each text's answer to each question, (texts, questions) int64."""
    rows = [[question.rule(text) for question in questions] for text in map(_read, texts)]
    return np.array(rows, dtype=np.int64).reshape(len(texts), len(questions))


def _read(text: str) -> str:
    """Return the characters of a text that the rules read."""
    half = _READ_CHARACTERS // 2
    return text if len(text) <= _READ_CHARACTERS else text[:half] + text[-half:]
