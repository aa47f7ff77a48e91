"""Recognition of what a text repeats of its own prompt: headings, and sentences of the instruction."""

import re
from functools import lru_cache

from server.llm.base import Request
from server.llm.parse import normal
from server.llm.render import Prompts
from server.spans import without_tags

_FEWEST_WORDS, _FEWEST_IN_SENTENCE = 4, 6  # a text or sentence of fewer words may occur in a prompt by chance
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+|\n")


def is_echo(form: str, text: str, request: Request, prompts: Prompts) -> bool:
    """Return whether the prompt has the whole text in it, or one sentence of the text."""
    sentences = (normal(sentence) for sentence in _SENTENCE_END.split(text))
    parts = [(form, _FEWEST_WORDS), *((sentence, _FEWEST_IN_SENTENCE) for sentence in sentences)]
    return any(len(part.split()) >= fewest and part in _prompt_words(request, prompts) for part, fewest in parts)


@lru_cache(maxsize=64)
def _prompt(request: Request, prompts: Prompts) -> str:
    """Return a prompt without the texts that it shows, which the rule `copies` covers."""
    prompt = "\n".join(prompts.render(request))
    for text in request.shown:
        prompt = prompt.replace(text, "\n")
    return without_tags(prompt) if request.marks else prompt


@lru_cache(maxsize=64)
def _prompt_words(request: Request, prompts: Prompts) -> str:
    return " ".join(normal(_prompt(request, prompts)).split())


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
