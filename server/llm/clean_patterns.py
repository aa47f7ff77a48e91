"""What chat models write around a text or in its place: the phrases of `phrases.yaml`, and its own prompt."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from re import Pattern
from typing import Any

import yaml

from server.llm.base import Request
from server.llm.parse import normal_letters
from server.llm.render import Prompts
from server.spans import remove_tags

_NOTHING = r"(?!)"
_PART = re.compile(r"~(\w+)~")


def _read_phrases() -> dict[str, dict[str, str]]:
    """Return, for each language, its phrases as regular expressions, keyed by what they are for."""
    content: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("phrases.yaml").read_text("utf-8"))
    parts = content.pop("parts")

    def joined(alternatives: str | list[str]) -> str:
        pattern = alternatives if isinstance(alternatives, str) else f"(?:{'|'.join(alternatives)})"
        return _PART.sub(lambda part: joined(parts[part[1]]), pattern)

    return {name: {use: joined(phrases) for use, phrases in uses.items()} for name, uses in content.items()}


PHRASES: Mapping[str, Mapping[str, str]] = _read_phrases()

_APOLOGY = (
    r"(?:(?:(?:i'm|i am|we're|we are|my) )?(?:(?:so|very|really) )?"
    r"(?:sorry|(?:i )?apologi[sz]e|apologies|unfortunately|(?:es )?tut mir leid|leider|(?:je suis )?désolée?)"
    r"(?: for (?:the|any|this) \w+)?[^\w\n]{0,9}(?:(?:but|aber|mais|that|however,?) )?)?"
)
_CLAUSE = (
    r"(?:^\W{0,9}(?:(?:while|although|though)\b[^.!?]{0,100}?, )?|[.!?:][\"”]? "
    r"|\b(?:but|however|and|so|that|thus|therefore|unfortunately|sorry|afraid|leider|aber|mais)\b"
    r"\W{0,3})"
)
_END_MARKS = r"[,:;!.—–-]"
_INSIDE = r"(?=[^\]}>\n]*[^\W\d_]{2})[\w$€£#][\w ,.:$€£'’/&#-]{0,58}"
_PLACEHOLDER = (
    rf"(?:\[\[?{_INSIDE}\]\]?(?!\()|\{{\{{?{_INSIDE}\}}\}}?|(?<!\w)<<?(?=[^\W\d_]){_INSIDE}>>?"
    r"|\((?:insert|enter|your name)\b[^)\n]{0,58}\))"
)
_NO_PLACEHOLDER = r"(?![\[{<]+\W*(?:br|hr|li|ul|ol|em|strong|div|span|sic|x+)\b)"
_NAME = rf"(?:(?-i:[A-Z][\w.'’-]*[a-z.])|{_PLACEHOLDER})"
_SIGNATURE = rf"{_NAME}(?:[\s,]+{_NAME}){{0,5}}"

_UNKNOWN = r"(?-i:\b[XYZ]) (?:amount|number|date|dollars|euros|pounds|days|hours)\b"
_IN_PLACE_OF_TEXT = (
    r"^\W*(?:(?:your|the|a|new|sample|example|placeholder|generated|synthetic|rewritten|another|insert|first|second)\s)*"
    r"(?:text|message|note|string|sentence|content|item|example|version|placeholder)s?"
    r"(?:\s?(?:goes here|here|one|two|three|\d{1,3}(?: of \d{1,3})?))?\W*$|^\W*lorem ipsum\b|^\W*(?:tbd|todo)\W*$"
)
PLACEHOLDERS = re.compile(rf"{_NO_PLACEHOLDER}{_PLACEHOLDER}|{_UNKNOWN}|{_IN_PLACE_OF_TEXT}", re.IGNORECASE)
"""Words in brackets, such as "[Your Name]", "{date}" or "<amount>", and "X amount"; not "{$12.00}" or "[ a / b ]".

Also a text that is only a word for one, such as "Your text here" or "string".
"""

LETTER_KINDS = re.compile(
    r"\b(?:e-?)?mails?\b|letter|complaint|correspondence|brief\b|schreiben\b|lettre|courrier|plainte|carta\b|lettera\b",
    re.IGNORECASE,
)
"""Kinds of text to which a salutation belongs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguagePatterns:
    """Patterns for texts in one language.

    Attributes:
        salutation: Salutation at the beginning of a text, with a line for the subject.
        closing: Closing at the end of a text, with its signature.
        greeting: A text that only greets, or that only has what models say in place of a text.
        refusal: A refusal, or what an assistant says about itself; for texts with single spaces.
    """

    salutation: Pattern[str]
    closing: Pattern[str]
    greeting: Pattern[str]
    refusal: Pattern[str]


@cache
def language_patterns(language: str) -> LanguagePatterns:
    """Return the patterns for a language; without its own phrases, those for English."""
    used = [PHRASES["english"], *([PHRASES[language]] if language in PHRASES and language != "english" else [])]

    def any_of(use: str) -> str:
        return f"(?:{'|'.join(phrases.get(use, _NOTHING) for phrases in used)})"

    word = rf"(?:{any_of('addressee')}\b|{_NAME})"
    addressee = rf"(?!(?-i:I)\b){word}(?:[\s/&]+{word}){{0,5}}"
    subject = r"\W{0,3}(?:subject|re|betreff|objet)\s*:[^\n]*(?:\n[\s,]*|$)"
    own_line = rf"\W{{0,3}}{any_of('hello')}(?: there)?[,!.]?[ \t]*\n\s*"
    dear_someone = rf"{any_of('dear')}\b(?:\s+[^\s,:;!?]+){{0,6}}?"
    to_someone = rf"{any_of('hello')}(?:,?\s+{addressee}|(?: there)?,?\s+{_PLACEHOLDER})"
    letter_end = rf"{any_of('regards')}\s*(?:[,.!:]|\n|$)\s*(?:{_SIGNATURE}\.?|[^.!?]{{0,80}}[.!?]?)"
    signed_thanks = rf"{any_of('thanks')}[^.!?\n,]{{0,30}}[,!.]?\s+{_SIGNATURE}\.?"
    refused = (
        rf"^\W{{0,9}}{_APOLOGY}{any_of('inability')} {any_of('help')}|{any_of('assistant')}"
        rf"|{_CLAUSE}{any_of('inability')} {any_of('making')}"
    )
    patterns = (
        rf"^(?:{subject}|{own_line})|^\W{{0,3}}(?:{dear_someone}|{to_someone})\s*(?:{_END_MARKS}(?=\s|$)|\n|$)[\s,]*",
        rf"(?:(?<=[.!?,;\n\"])|^)\s{{0,9}}(?:{letter_end}|{signed_thanks})\s*$|(?:\n|\s[—–-])\s{{0,9}}{_PLACEHOLDER}\W*$",
        rf"^\W*(?:{any_of('dear')}|{any_of('hello')})\b(?:\s+[^\s,.!?]+){{0,3}}\W*$|^\W*(?:{any_of('empty')}\W+)+$",
        refused,
    )
    salutation, closing, greeting, refusal = (re.compile(pattern, re.IGNORECASE) for pattern in patterns)
    return LanguagePatterns(salutation=salutation, closing=closing, greeting=greeting, refusal=refusal)


_COMMON = {language: frozenset(phrases["common"].split()) for language, phrases in PHRASES.items()}
_FEWEST_WORDS, _FEWEST_COMMON, _COMMON_SHARE = 5, 2, 0.2


def looks_like_another_language(text: str, language: str) -> bool:
    """Return whether frequent words of another language outnumber those of the text's own by two to one.

    Only texts with at least five words count, of which two, and one in five, are frequent words of the other language.
    """
    words = re.findall(r"[^\W\d_]+(?:['’][^\W\d_]+)?", text.casefold())
    if len(words) < _FEWEST_WORDS or language not in _COMMON:
        return False
    hits = {name: sum(word in common for word in words) for name, common in _COMMON.items()}
    most = max(count for name, count in hits.items() if name != language)
    return most >= max(_FEWEST_COMMON, _COMMON_SHARE * len(words)) and most > 2 * hits[language]


_FEWEST_IN_PROMPT, _FEWEST_IN_SENTENCE = 4, 6  # a text or sentence of fewer words may occur in a prompt by chance
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+|\n")


def is_echo(form: str, text: str, request: Request, prompts: Prompts) -> bool:
    """Return whether the prompt has the whole text in it, or one sentence of the text."""
    sentences = (normal_letters(sentence) for sentence in _SENTENCE_END.split(text))
    parts = [(form, _FEWEST_IN_PROMPT), *((sentence, _FEWEST_IN_SENTENCE) for sentence in sentences)]
    return any(len(part.split()) >= fewest and part in _prompt_words(request, prompts) for part, fewest in parts)


@lru_cache(maxsize=64)
def _prompt(request: Request, prompts: Prompts) -> str:
    """Return a prompt without the texts that it shows, which the rule `copies` covers."""
    prompt = "\n".join(prompts.render(request))
    for text in request.shown:
        prompt = prompt.replace(text, "\n")
    return remove_tags(prompt) if request.marks else prompt


@lru_cache(maxsize=64)
def _prompt_words(request: Request, prompts: Prompts) -> str:
    return " ".join(normal_letters(_prompt(request, prompts)).split())


@lru_cache(maxsize=64)
def prompt_headings(request: Request, prompts: Prompts) -> re.Pattern[str] | None:
    """Return a pattern of the prompt's headings, such as "Good note 3:", and of what follows them inside a text.

    A heading is a line of two to six words that ends in a colon. Its number may be any other.
    """
    lines = re.findall(r"^\W*((?:[^\s:]+ ){1,5}[^\s:]+):\s*$", _prompt(request, prompts), re.MULTILINE)
    if not lines:
        return None
    headings = "|".join(sorted({re.sub(r"\d+", r"\\d{1,3}", re.escape(line)) for line in lines}))
    start = rf"^\W{{0,3}}(?:{headings})\s*(?::[\s*_]*|$)"
    return re.compile(rf"{start}|(?:\n\W{{0,3}}|(?<=[.!?\"])\s{{1,9}})(?:{headings})\s*:[\s\S]*$", re.IGNORECASE)
