"""Marks of spans in prompts and replies: models mark entities as they write, for example `<drug>aspirin</drug>`.

Each mark in a reply is verified, and a text with an incorrect mark is dropped completely (`server/spans.py`). The marks
are removed from all other texts before anything else happens: texts are embedded, voted on and stored without marks,
and their spans are kept separately. So no hospital sees a mark, no query asks for one, and no answer depends on one.
When a prompt shows such a text again, its marks are restored.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from server.domain import Candidate, Example, Task
from server.spans import Marked, Spans, mark_spans, read_marks, remove_tags

if TYPE_CHECKING:
    from server.llm.base import Request

_EXAMPLE_WORDS = 120  # of the longest public text that is an example


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What a prompt says about marks: the types of spans, and an example.

    Attributes:
        types: Each type with its public description.
        example: A text with marks, never a private one; if empty, an example is made up from the descriptions.
    """

    types: tuple[tuple[str, str], ...]
    example: str = ""

    def read(self, reply: str) -> Marked | str:
        """Remove the marks from a text; return it with its spans, or the reason why it is dropped."""
        return read_marks(reply, [name for name, _ in self.types])

    @property
    def shown_example(self) -> str:
        """The example; if there is no example, one made up from the descriptions."""
        return self.example or "; ".join(f"<{name}>{description}</{name}>" for name, description in self.types)


def marks_of(task: Task) -> Marks | None:
    """Return the marks for a task's prompts, without an example yet; None if the task has no types of spans."""
    return Marks(types=tuple(task.spans.items())) if task.spans else None


def without_marks(request: "Request") -> "Request":
    """Return the same request without marks, for a model that cannot read them."""
    if request.marks is None:
        return request
    return request.with_texts(remove_tags, marks=None)


class RunMarks:
    """The spans of the texts of one run.

    Args:
        examples: Public texts; one of the texts with marks serves as the example in prompts.
    """

    def __init__(self, examples: Iterable[Example] = ()) -> None:
        self._example = _example(examples)
        self._spans: dict[str, Spans] = {}

    def add(self, text: Marked) -> None:
        """Store the spans of a text, replacing any earlier spans of the same text."""
        self._spans[text.text] = text.spans

    def know(self, candidates: Iterable[Candidate]) -> None:
        """Store the spans of candidates, which a resumed run already has."""
        for candidate in candidates:
            if candidate.spans is not None:
                self.add(Marked(candidate.text, candidate.spans))

    def given(self, candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
        """Return the candidates with their spans, or with None for a text that no model has marked."""
        return tuple(replace(candidate, spans=self._spans.get(candidate.text)) for candidate in candidates)

    def shown(self, request: "Request") -> "Request":
        """Return the request with an example of marks, and with the marks restored in the texts that it shows."""
        if request.marks is None:
            return request
        marks = replace(request.marks, example=self._example)
        return request.with_texts(self._marked, marks=marks)

    def _marked(self, text: str) -> str:
        return mark_spans(text, self._spans.get(text, ()))


def _example(examples: Iterable[Example]) -> str:
    """Return, with marks, the short public text with the most types of spans; empty if no text has marks."""
    fitting = (text for text in examples if text.spans and len(text.text.split()) <= _EXAMPLE_WORDS)
    best = max(fitting, key=lambda text: len({span.type for span in text.spans or ()}), default=None)
    return mark_spans(best.text, best.spans or ()) if best else ""
