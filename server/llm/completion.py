"""Prompts for models that continue a text better than they follow instructions: a list of examples, then a beginning.

A small instruct model cannot count, write a JSON list, or understand "unlike these", but after three or four examples
it continues a list well. One prompt yields one text, and is sampled once for each requested text:

    Written by: a nurse.
    Note, about "falls": "He fell."
    Note, about "burns": "

The examples are the request's good exemplars, or public texts on other topics (for a section, public texts under the
section's heading) and then its sources. A prompt without any example is poor (`SMALL_MODEL.md`). Examples much longer
than the requested length are cut, since reading prompts takes most of the time. A text to rewrite is the last example,
and the model continues with a variation of it; with blanks, the new text begins with words of its source. Abstracts are
requested and rewritten like any other text of the requested length, since such a model cannot summarise. A subtopic is
a text of a few words that follows subtopics of other topics.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from common import rng
from common.domain import is_one_population
from common.models.chat import whole_sentences
from common.phrases import capital
from common.sections import normal_heading
from common.validate import at_least, in_range
from server.domain import Example
from server.llm.base import Request
from server.spans import mark_spans, remove_tags
from server.spans import words as words_of

WORDING = 4
"""Version of the wording. It is part of a model's identity, so increase it with every change to a prompt."""

DECLINED = frozenset({"contrast", "keyphrases"})
"""Modes that a completion cannot express. Bad exemplars are left out of prompts. When a line before each text listed
keyphrases, 272 in total, SmolLM2-135M used only 30 of them."""
SUBTOPICS = (
    ("returning goods", "label for the parcel"),
    ("school trips", "cost of the coach"),
    ("returning goods", "refund not yet received"),
    ("heating", "boiler makes a noise"),
)
"""Pairs of a topic and a subtopic, for use as examples; no task is about these topics."""

_LINE = "\n"
STOP = '"'
"""Text that ends a completion. A text also ends at any line break; the lines of a longer example are joined."""
_FEWEST_WORDS = 3  # shorter completions are fragments
_KEYWORDS = 2  # that stand for a topic
_CHOICE = 4  # public texts per example, of which those of about the requested length are shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """The text that a model continues, and the number of words in its longest example; 0 without examples."""

    prompt: str
    longest: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """Settings of the prompts that suit a model.

    Attributes:
        examples: Maximum number of examples in a prompt; if there are more exemplars, each prompt shows a random
            choice. All sources, or at least one exemplar, are shown in any case.
        temperature: Factor by which the request's temperature is multiplied; small models need a lower one than large
            models.
    """

    examples: int = 4
    temperature: float = 0.75

    def __post_init__(self) -> None:
        at_least(0, examples=self.examples)
        in_range(0, 2, temperature=self.temperature)

    @property
    def identity(self) -> str:
        """What prompts depend on, in the form from before there were fewer settings, so that caches keep replies."""
        unchanged = "public=True, instruction=None, end=None"
        return f"Completion(examples={self.examples}, {unchanged}, temperature={self.temperature})"

    def beginning(self, request: Request, public: Sequence[Example]) -> Beginning:
        """Return the prompt for a request, without its bad exemplars; equal arguments give equal prompts.

        The public texts of the task are shown where the request has no exemplars.
        """
        stream = rng.experiment(request.seed, "completion")
        examples = self._examples(request, public, stream)
        items = [*examples, (_topic(request), opening_words(request))]
        return Beginning(
            prompt=_first_lines(request, examples)
            + f"{STOP}{_LINE}".join(_item(request, topic, text) for topic, text in items),
            longest=max((len(text.split()) for _, text in examples), default=0),
        )

    def read(self, completion: str, request: Request, *, whole: bool) -> str | None:
        """Return the new text in what the model wrote, with or without the stop text; None if it is a fragment.

        If the model did not end the text (`whole`), it is cut off after its last complete sentence.
        """
        text = next(iter(completion.split(STOP, maxsplit=1)[0].splitlines()), "")
        if not whole:
            text = whole_sentences(text)
        text = f"{opening_words(request)}{text}".strip() if text.strip() else ""
        return text if len(text.split()) >= (1 if request.phrases else _FEWEST_WORDS) else None

    def _examples(
        self, request: Request, public: Sequence[Example], stream: np.random.Generator
    ) -> list[tuple[str, str]]:
        """Return the examples as pairs (topic, text)."""
        exemplars = request.good or request.source
        order = stream.permutation(len(exemplars))[: max(self.examples, len(request.source), 1)]
        exemplar_pairs = [(_topic(request), _shortened(exemplars[at], request)) for at in order]
        if request.phrases:
            return list(SUBTOPICS)
        if request.good:
            return exemplar_pairs
        others = _public(public, request, max(0, self.examples - len(exemplar_pairs)), stream)
        # A model would write on under the last example's topic.
        bare = is_one_population(label for label, _ in request.labels) and not _topic(request)
        topics = ["" if bare else example.topic or "" for example in others]
        texts = [_shortened(_text(example, request), request) for example in others]
        return [*zip(topics, texts, strict=True), *exemplar_pairs]


def _first_lines(request: Request, examples: Sequence[tuple[str, str]]) -> str:
    wording = request.wording
    described = [f"Written by: {wording.writer}."] if wording.writer else []
    described += [f"Manner of writing: {wording.style}."] if wording.style else []
    lines = [" ".join(described)] if described else []
    if request.before:
        lines.append(f"The text so far: {' '.join(request.before.split())}")
    if marks := request.marks:
        lines.append(f"Marks: {'; '.join(f'<{name}> {words}' for name, words in marks.types)}.")
        if all(remove_tags(text) == text for _, text in examples):
            lines.append(f"Marked: {marks.shown_example}")
    return "".join(f"{line}{_LINE}" for line in lines)


def _item(request: Request, topic: str, text: str) -> str:
    """Return a text after its kind and topic, without the quotation mark that ends it."""
    kind, term = capital("subtopic" if request.phrases else request.task_kind), request.wording.label
    about = f', {"about" if term == "label" else term} "{_without_quotes(topic)}"' if topic else ""
    return f"{kind}{about}: {STOP}{_without_quotes(' '.join(text.split()))}"


def with_topics(public: Sequence[Example]) -> list[Example]:
    """Return the public texts, each with a topic: its own or, if it has none, the text's two longest words.

    If the examples had no topics, a model would ignore the requested topic.
    """
    return [example if example.topic else replace(example, topic=_longest_words(example.text)) for example in public]


def opening_words(request: Request) -> str:
    """Return the source's first words, which the new text keeps; empty if the request has no blanks."""
    if not request.blanks:
        return ""
    source = request.source[0]
    words = [word.group() for word in words_of(source)] if request.marks else source.split()
    return " ".join(words[: round(len(words) * (1 - request.blanks))])


def _without_quotes(text: str) -> str:
    return text.replace(STOP, "'")


def _topic(request: Request) -> str:
    """Return the label with its description, and the attribute; empty if the prompt must name neither."""
    labels = " and ".join(_named(*label) for label in request.requested)
    return ", ".join(filter(None, (labels, request.attribute)))


def _named(label: str, description: str) -> str:
    name, described = (" ".join(words.replace("_", " ").split()) for words in (label, description))
    return name if described.lower() in ("", name.lower()) else f"{name} ({described})"


def _text(example: Example, request: Request) -> str:
    """Return a public text, with its marks if texts with marks are requested."""
    return mark_spans(example.text, example.spans or ()) if request.marks else example.text


def _shortened(text: str, request: Request) -> str:
    """Return an example, cut to at most twice the requested number of words, after a whole sentence if possible."""
    words, matches = request.words, words_of(text) if request.marks else list(re.finditer(r"\S+", text))
    if words is None or len(matches) <= 2 * words:
        return text
    cut = text[: matches[2 * words - 1].end()]
    whole = whole_sentences(cut)
    if request.marks and isinstance(request.marks.read(whole), str):  # a full stop within a mark
        return cut
    return whole or cut


def _public(public: Sequence[Example], request: Request, count: int, stream: np.random.Generator) -> list[Example]:
    """Draw `count` public texts whose topic is not a label of the task, preferably of about the requested length.

    For a section, only texts under the section's own heading are drawn, if there are any such texts: headings are
    public, and do not distinguish one text from another.
    """
    section = request.before is not None
    labels = {normal_heading(name) if section else name.replace("_", " ").lower(): name for name, _ in request.labels}
    named = [(labels.get((normal_heading if section else str.lower)(text.topic or "")), text) for text in public]
    of_label = [
        replace(text, topic=_topic(request)) for name, text in named if section and name and name == request.label
    ]
    others = of_label or [text for name, text in named if name is None]
    drawn, words = [others[at] for at in stream.permutation(len(others))[: count * _CHOICE]], request.words
    if words is not None:
        drawn.sort(key=lambda example: abs(len(example.text.split()) - words))
    return drawn[:count]


def _longest_words(text: str) -> str:
    words = list(dict.fromkeys(re.findall(r"[^\W\d_]+", text.lower())))
    longest = sorted(words, key=len, reverse=True)[:_KEYWORDS]
    return " ".join(word for word in words if word in longest)
