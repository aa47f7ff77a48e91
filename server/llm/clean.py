"""Removal of what models write around a text or in place of it. Each rule is separate and counts its changes.

Rules change only the form of a text, or drop it. If nothing remains of a text, it counts as lost and is requested
again. A rule that the public texts break is off, since what they look like is right for the task. The phrases of models
are in `phrases.yaml`.

Of a reply to a section's request only that section is left; without it the reply counts as "no section". The marks of a
text with spans are removed after these rules (`marks.py`); a text dropped because of its marks counts as "no spans:
REASON".
"""

import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial

from common.sections import section_body
from server.domain import Task
from server.llm.base import Request
from server.llm.clean_patterns import (
    LETTER_KINDS,
    PLACEHOLDERS,
    is_echo,
    language_patterns,
    looks_like_another_language,
    prompt_headings,
)
from server.llm.marks import RunMarks
from server.llm.parse import NUMBERED, normal_letters, without_surrogates
from server.llm.render import Prompts, our_prompts
from server.settings.schema import Rules
from server.spans import Marked, remove_tags

log = logging.getLogger("caucus.llm")

_FENCE = re.compile(r"^\s*```[\w-]*[ \t]*\n?|\n?\s*```\s*$")
_HEADING = re.compile(r"^(?:#{1,6}[ \t]+[^\n]*|\*\*[^*\n]{1,80}\*\*:?[ \t]*|[=-]{3,})(?:\n+|\Z)", re.MULTILINE)
_PREFACE = re.compile(
    r"^\s*(?:(?:sure|certainly|of course|absolutely)\b[^\n]{0,80}?[,.!:]\s*)?"
    r"(?:here(?:'s|’s| is| are| it is| you are| you go)|below is|this is|how about this)\b"
    r"[^\n:]{0,120}:\s*\n?|^\s*(?:sure|certainly|of course)[!,.:]\s*\n",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    rf"^\s*(?:(?P<noun>(?:\w+\s+){{0,2}}{NUMBERED}\s+#?\d{{1,3}}(?:[.):](?:\s+|$)|$))"
    r"|#?(?P<number>\d{1,3})[.):](?:\s+|$)|(?P<bullet>[-*•])\s+)",
    re.IGNORECASE,
)
_LATER_ITEM = re.compile(r"\n[ \t]*(\d{1,3})[.)]\s")
_NUMBER_OF_NEW = re.compile(r"(?:^|\n|(?<=[.!?]))\s{0,9}\W{0,3}\d{1,3} new \w+\W{0,3}$", re.IGNORECASE)
_QUOTES = {'"': '"', "“": "”", "«": "»", "„": "“", "'": "'", "‘": "’", "`": "`"}
_APOSTROPHE = re.compile("[’‘ʼ´`＇]")
_KEPT_CHARACTERS = "\n\t\u200c\u200d"  # the last two join letters, for example in Persian, and emoji
_LINE_END = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_LOOPS, _LOOP_WORDS, _LONGEST_LOOP = 3, 6, 40
"""Minimum number of repetitions in a loop, minimum number of words in all of them, maximum number of words in one."""
_REDACTED = re.compile(r"(?=.*xx)[x\W\d_]+|[\W_]{2,}")  # such as "XXXX" or "XX/XX/2019", or a ruled line, as "--"
_PUNCTUATION = ",.;:!?"
_USUAL_SHARE = 0.01  # minimum share of the public letters for a script to be usual
_WORD = re.compile(r"[^\W\d_]+")
_SINGLE_LETTER_WORDS = ("CJK", "HANGUL", "HIRAGANA", "KATAKANA")  # a single Greek letter is a symbol
_MOST_BROKEN = 0.005
_MOST_CHECKED = 1_000  # public texts


class Cleaner:
    """Applies the rules to the texts of one run.

    Args:
        rules: Switches of the rules.
        public: Public texts in the form of the run's texts; a rule that they break is off.
        marks: Receives the spans of the texts that remain.
        task: The task of the texts; its descriptions and the public texts show which scripts are usual. If there are
            neither, no text counts as foreign.
        prompts: Wordings of the prompts, whose echoes are dropped; None for our own.
    """

    def __init__(
        self,
        rules: Rules,
        public: Iterable[str] = (),
        marks: RunMarks | None = None,
        *,
        task: Task | None = None,
        prompts: Prompts | None = None,
    ) -> None:
        public = list(public)
        self._prompts = prompts or our_prompts()
        self.marks = marks or RunMarks()
        self._language = task.language if task else "english"
        described = [task.kind, *task.labels, *task.labels.values()] if task else []
        self._scripts = usual_scripts([*described, *public])
        self._rules = rules
        self._rules = self._unbroken(public, task)

    def clean(
        self, texts: Sequence[str], request: Request, *, run_texts: Container[str]
    ) -> tuple[list[str], Counter[str]]:
        """Return the remaining texts, and the number of changes and dropped texts for each rule.

        Foreign texts are counted even if the rule `foreign`, which drops them, is off.

        Args:
            texts: Texts of one reply.
            request: Request that they answer; phrases pass unchanged, but for invisible characters.
            run_texts: Texts that the run already has.
        """
        changed: Counter[str] = Counter()
        stripped = [self._readable(text, changed) for text in texts]
        if request.phrases:
            return [text for text in stripped if text], changed
        shown = {_form(text, request) for text in request.shown} if self._rules.copies else set()
        texts_left: list[str] = []
        for text in stripped:
            if request.before is not None:
                text = section_body(text, request.label or "", [name for name, _ in request.labels])  # noqa: PLW2901
                changed["no section"] += not text
            bare = self._bare(text, request, changed)
            marked = request.marks.read(bare) if request.marks else Marked(bare)
            if isinstance(marked, str):
                changed[f"no spans: {marked}"] += 1
                continue
            bare = marked.text
            rule = self._violation(bare, request, shown) if bare else None
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

    def _unbroken(self, public: list[str], task: Task | None) -> Rules:
        """Return the rules without those that would change or drop too many of the public texts."""
        labels = tuple(task.labels.items()) if task else (("text", "text"),)
        request = Request(task_kind=task.kind if task else "text", labels=labels)
        checked = public[:: len(public) // _MOST_CHECKED + 1]
        broken: Counter[str] = Counter()
        for text in checked:
            changed: Counter[str] = Counter()
            bare = self._bare(self._readable(text, changed), request, changed)
            rule = self._violation(bare, request, set()) if bare else None
            broken.update({*changed, *([rule] if rule else [])})
        off = {rule: count for rule, count in broken.items() if count > max(1, _MOST_BROKEN * len(checked))}
        for rule, count in sorted(off.items()):
            log.info("llm.clean.%s is off, since it would apply to %d of %d public texts", rule, count, len(checked))
        return replace(self._rules, **dict.fromkeys(off, False))

    def _readable(self, text: str, changed: Counter[str]) -> str:
        text = without_surrogates(text).strip()
        return _take("characters", text, _visible(text), changed) if self._rules.characters else text

    def _steps(self, request: Request) -> Iterator[tuple[str, Callable[[str], str]]]:
        """Yield each rule that takes off what stands around a text, with its function; a rule may have several."""
        patterns = language_patterns(self._language)
        yield "fences", partial(_FENCE.sub, "")
        yield "prefaces", partial(_PREFACE.sub, "", count=1)
        yield "headings", partial(_HEADING.sub, "", count=1)
        if headings := prompt_headings(request, self._prompts):
            yield "headings", partial(headings.sub, "", count=1)
        yield "numbering", _without_number
        yield "quotes", _unquoted
        if not LETTER_KINDS.search(request.task_kind):
            yield "salutations", partial(patterns.salutation.sub, "")
            yield "salutations", partial(patterns.closing.sub, "")

    def _bare(self, text: str, request: Request, changed: Counter[str]) -> str:
        """Return the text without the model's additions around it. The rules are repeated until nothing changes."""
        every_step = [*self._steps(request), ("loops", _without_loop)]
        steps = [(rule, step) for rule, step in every_step if getattr(self._rules, rule)]
        before = None
        while before != text:
            before = text
            for rule, step in steps:
                text = _take(rule, text, step(text), changed)
        return text

    def _violation(self, text: str, request: Request, shown: set[str]) -> str | None:
        """Return the name of the first rule that drops this text, if any."""
        form = _form(text, request)
        read = _APOSTROPHE.sub("'", text)
        patterns = language_patterns(self._language)
        checks: dict[str, Callable[[], object]] = {
            "shells": lambda: (
                patterns.greeting.match(f"{read} ") or not all(step(read).strip() for _, step in self._steps(request))
            ),
            "names": lambda: (
                form.replace("_", " ")
                in {
                    normal_letters(name.replace("_", " "))
                    for label in (*request.labels, [request.task_kind])
                    for name in label
                }
            ),
            "refusals": lambda: patterns.refusal.search(" ".join(read.replace("*", "").split())),
            "placeholders": lambda: PLACEHOLDERS.search(read) or (request.blanks and "____" in read),
            "copies": lambda: form in shown,
            "echoes": lambda: is_echo(form, read, request, self._prompts),
            "languages": lambda: looks_like_another_language(read, self._language),
            "foreign": lambda: self._is_foreign(read),
        }
        return next((rule for rule, breaks in checks.items() if getattr(self._rules, rule) and breaks()), None)

    def _is_foreign(self, text: str) -> bool:
        """Return whether a word of the text has two letters, or one East Asian character, of an unusual script."""
        if not self._scripts or text.isascii():
            return False
        letters_joined = "".join(letter for letter in text if unicodedata.category(letter)[0] != "M")
        for word in _WORD.findall(letters_joined):
            foreign = [script for letter in word if (script := _script(letter)) not in self._scripts]
            if len(foreign) > 1 or any(script in _SINGLE_LETTER_WORDS for script in foreign):
                return True
        return False


def _form(text: str, request: Request) -> str:
    """Return the normal form of a text without its marks."""
    return normal_letters(remove_tags(text) if request.marks else text)


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


def _visible(text: str) -> str:
    """Return the text without control, format and replacement characters; a NUL byte is one of them."""
    text = _LINE_END.sub("\n", text)
    return "".join(c for c in text if c in _KEPT_CHARACTERS or (c != "\ufffd" and unicodedata.category(c)[0] != "C"))


def _without_number(text: str) -> str:
    """Return the text without its number, unless it is the first of a list, and without what belongs to other texts."""
    text = _NUMBER_OF_NEW.sub("", text)
    number = _NUMBER.match(text)
    if number:
        following = rf"{int(number['number']) + 1}[.):]" if number["number"] else r"[-*•]"
        rest = text[number.end() :]
        return rest if number["noun"] or not re.search(rf"\s{following}\s", rest) else text
    later = _LATER_ITEM.search(text)
    if later and int(later[1]) > 1 and not re.search(rf"(?:^|\s){int(later[1]) - 1}[.):]\s", text[: later.start()]):
        return text[: later.start()]
    return text


def _without_loop(text: str) -> str:
    """Return the text up to the end of the first immediately repeated word sequence; all of it if there is none.

    A redacted word, or a piece of a ruled line, equals no other one.
    """
    words = list(re.finditer(r"\S+", text))
    said = [word.group().casefold().strip(_PUNCTUATION) for word in words]
    said = [f"{word} {place}" if _REDACTED.fullmatch(word) else word for place, word in enumerate(said)]
    for start in range(len(said)):
        for period in range(1, min(_LONGEST_LOOP, (len(said) - start) // _LOOPS) + 1):
            repeats = 1
            while said[start : start + period] == said[start + repeats * period : start + (repeats + 1) * period]:
                repeats += 1
            if repeats >= _LOOPS and repeats * period >= _LOOP_WORDS:
                return text[: words[start + period - 1].end()]
    return text


def usual_scripts(public: Iterable[str]) -> frozenset[str]:
    """Return the scripts that have a usual share of the letters of public texts, named as in `count_scripts`."""
    counts: Counter[str] = sum((count_scripts(text) for text in public), Counter())
    return frozenset(script for script, count in counts.items() if count >= _USUAL_SHARE * counts.total())


def count_scripts(text: str) -> Counter[str]:
    """Return the number of letters per script, named as in Unicode: "LATIN", "CYRILLIC", "CJK"."""
    return Counter(_script(letter) for letter in text if letter.isalpha())


@lru_cache(maxsize=4096)
def _script(letter: str) -> str:
    return unicodedata.name(letter, "unknown").split()[0].split("-")[0]


PLAIN = Cleaner(Rules.none())
"""A cleaner without rules, which leaves texts unchanged."""
