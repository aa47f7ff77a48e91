"""Removal of what models write around a text or in place of it. Each rule is separate and counts its changes.

Rules change only the form of a text. If nothing remains of a text, it counts as lost and is requested again. For a
structured text, parsing by its structure replaces the rules from `fences` to `loops`, and takes place even if these
rules are off. Each kind of repair is counted as "structure: KIND", and a text dropped during parsing as "no structure:
REASON". The marks of a text with spans are removed after these rules (`marks.py`); a text dropped because of its marks
counts as "no spans: REASON".
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from functools import lru_cache

from common.structure import Structure
from server.llm.base import Request
from server.llm.marks import RunMarks
from server.llm.parse import normal
from server.llm.render import Prompts, our_prompts
from server.settings.schema import Rules
from server.spans import Marked, without_tags

_FENCE = re.compile(r"^\s*```[\w-]*[ \t]*\n?|\n?\s*```\s*$")
_HEADING = re.compile(r"^(?:#{1,6}[ \t]+[^\n]*|\*\*[^*\n]{1,80}\*\*:?[ \t]*|[=-]{3,})\n+", re.MULTILINE)
_PREFACE = re.compile(
    r"^\s*(?:(?:sure|certainly|of course|absolutely)\b[^\n]{0,80}?[,.!:]\s*)?"
    r"(?:here(?:'s|’s| is| are)|below is|this is)\b[^\n:]{0,120}:\s*\n?|^\s*(?:sure|certainly|of course)[!,.:]\s*\n",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"^\s*(?:(?:text|example|note|version|sample)\s+)?#?\d{1,3}[.):]\s+(?=\S)|^\s*[-*•]\s+", re.IGNORECASE
)
_QUOTES = {'"': '"', "“": "”", "«": "»", "„": "“", "'": "'", "‘": "’", "`": "`"}
_ECHOED_WORDS = 4  # fewer words may occur in a prompt by chance
_LOOPS, _LOOP_WORDS, _LONGEST_LOOP = 3, 6, 40
"""Minimum number of repetitions in a loop, minimum number of words in all of them, maximum number of words in one."""
_PUNCTUATION = ",.;:!?"
_USUAL_SHARE = 0.01  # minimum share of the public letters for a script to be usual
_FOREIGN_SHARE = 0.3
_FEW_LETTERS = 8


class Cleaner:
    """Applies the rules to the texts of one run.

    Args:
        rules: Switches of the rules.
        public: Texts in the run's language, such as public texts and the task's descriptions; if empty, no text counts
            as foreign.
        marks: Receives the spans of the texts that remain.
        prompts: Wordings of the prompts, whose echoes are dropped; None for our own.
    """

    def __init__(
        self,
        rules: Rules,
        public: Iterable[str] = (),
        marks: RunMarks | None = None,
        prompts: Prompts | None = None,
    ) -> None:
        self._rules = rules
        self._prompts = prompts or our_prompts()
        self.marks = marks or RunMarks()
        self._scripts = _usual_scripts(public)

    def clean(
        self, texts: Sequence[str], request: Request, *, run_texts: Container[str]
    ) -> tuple[list[str], Counter[str]]:
        """Return the remaining texts, and the number of changes and dropped texts for each rule.

        Foreign texts are counted even if the rule `foreign`, which drops them, is off.

        Args:
            texts: Texts of one reply.
            request: Request that they answer; phrases pass unchanged.
            run_texts: Texts that the run already has.
        """
        changed: Counter[str] = Counter()
        # A model may write half of a surrogate pair, which cannot be encoded in a file.
        stripped = [text.encode(errors="replace").decode().strip() for text in texts]
        if request.phrases:
            return [text for text in stripped if text], changed
        shown = {_form(text, request) for text in request.shown} if self._rules.copies else set()
        texts_left: list[str] = []
        for text in stripped:
            bare = _structured(text, request.structure, changed) if request.structure else self._bare(text, changed)
            marked = request.marks.read(bare) if request.marks else Marked(bare)
            if isinstance(marked, str):
                changed[f"no spans: {marked}"] += 1
                continue
            bare = marked.text
            rule = self._violation(bare, request, shown)
            if rule is None and self._rules.duplicates and (bare in run_texts or bare in texts_left):
                rule = "duplicates"
            if rule is not None:
                changed[rule] += 1
            elif bare:
                changed["foreign"] += self._is_foreign(bare)
                texts_left.append(bare)
                if request.marks:
                    self.marks.add(marked)
        return texts_left, +changed

    def _bare(self, text: str, changed: Counter[str]) -> str:
        """Return the text without the model's additions around it. The rules are repeated until nothing changes."""
        steps = (("fences", _FENCE), ("prefaces", _PREFACE), ("headings", _HEADING), ("numbering", _NUMBER))
        before = None
        while before != text:
            before = text
            for rule, pattern in steps:
                if getattr(self._rules, rule):
                    text = _take(rule, text, pattern.sub("", text, count=0 if rule == "fences" else 1), changed)
            if self._rules.quotes:
                text = _take("quotes", text, _unquoted(text), changed)
            if self._rules.loops:
                text = _take("loops", text, _without_loop(text), changed)
        return text

    def _violation(self, text: str, request: Request, shown: set[str]) -> str | None:
        """Return the name of the rule that drops this text, if any."""
        form = _form(text, request)
        if self._rules.copies and form in shown:
            return "copies"
        if self._rules.echoes and len(form.split()) >= _ECHOED_WORDS and form in _prompt(request, self._prompts):
            return "echoes"
        if self._rules.foreign and self._is_foreign(text):
            return "foreign"
        return None

    def _is_foreign(self, text: str) -> bool:
        if not self._scripts:
            return False
        scripts = _scripts(text)
        letters = scripts.total()
        if letters < _FEW_LETTERS:
            return False
        return sum(count for script, count in scripts.items() if script not in self._scripts) > _FOREIGN_SHARE * letters


def _structured(text: str, structure: Structure, changed: Counter[str]) -> str:
    """Return the structured text in canonical JSON, or an empty text if it lacks the structure; count repairs."""
    bare, said = structure.read(text)
    changed.update(f"{'structure' if bare else 'no structure'}: {kind}" for kind in said)
    return bare or ""


def _form(text: str, request: Request) -> str:
    """Return the normal form of a text without its marks, or of the text field of a structured one."""
    if request.marks:
        text = without_tags(text)
    return normal(request.structure.reading(text) if request.structure else text)


def _take(rule: str, before: str, after: str, changed: Counter[str]) -> str:
    """Return the changed text and count the change; if nothing would remain, return the earlier text."""
    after = after.strip()
    if not after or after == before:
        return before
    changed[rule] += 1
    return after


def _unquoted(text: str) -> str:
    closing = _QUOTES.get(text[:1])
    if len(text) < 2 or closing is None or text[-1] != closing:
        return text
    inner = text[1:-1]
    # '"Yes," she said, "no."' is not one quotation.
    return text if text[0] in inner or closing in inner else inner


def _without_loop(text: str) -> str:
    """Return the text up to the end of the first immediately repeated word sequence; all of it if there is none."""
    words = list(re.finditer(r"\S+", text))
    said = [word.group().casefold().strip(_PUNCTUATION) for word in words]
    for start in range(len(said)):
        for period in range(1, min(_LONGEST_LOOP, (len(said) - start) // _LOOPS) + 1):
            repeats = 1
            while said[start : start + period] == said[start + repeats * period : start + (repeats + 1) * period]:
                repeats += 1
            if repeats >= _LOOPS and repeats * period >= _LOOP_WORDS:
                return text[: words[start + period - 1].end()]
    return text


@lru_cache(maxsize=64)
def _prompt(request: Request, prompts: Prompts) -> str:
    """Return the words of a prompt without the texts that it shows, which the rule `copies` covers."""
    prompt = "\n".join(prompts.render(request))
    for text in request.shown:
        prompt = prompt.replace(text, "\n")
    if request.marks:
        prompt = without_tags(prompt)
    return " ".join(normal(prompt).split())


def _usual_scripts(public: Iterable[str]) -> frozenset[str]:
    counts: Counter[str] = sum((_scripts(text) for text in public), Counter())
    return frozenset(script for script, count in counts.items() if count >= _USUAL_SHARE * counts.total())


def _scripts(text: str) -> Counter[str]:
    """Return the number of letters per script, named as in Unicode: "LATIN", "CYRILLIC", "CJK"."""
    return Counter(_script(letter) for letter in text if letter.isalpha())


@lru_cache(maxsize=4096)
def _script(letter: str) -> str:
    return unicodedata.name(letter, "unknown").split()[0].split("-")[0]
