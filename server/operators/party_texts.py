"""Release of the parties' answers, for methods in which the parties write all texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from common import rng
from common.errors import ConfigError
from common.queries import text_codec
from common.queries.texts import TextSpec
from server.domain import Candidate, Task
from server.llm.orders import per_label
from server.method import NoMemory, State, Tools
from server.operators.round_report import make_report
from server.settings.methods import PartyTextsSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyTexts(PartyTextsSettings):
    """A method with a single query, to which parties respond with the texts themselves; a subclass defines the plan.

    Attributes:
        query: Name of the query in the plan.
        balanced: Whether the released texts are balanced across labels (+-1).
    """

    memory: ClassVar[type[NoMemory]] = NoMemory
    modes: ClassVar[Mapping[str, str | None]] = {}  # no requests: the parties write all texts
    query: ClassVar[str]
    balanced: ClassVar[bool]

    def check_task(self, task: Task) -> None:
        """Raise a ConfigError if there are fewer texts than labels, or if the task has types of spans."""
        task.check_unmarked(
            f"method {self.name}",
            "as the hospitals' own models write the texts and mark none",
            "Choose method=class_sums or wasp",
        )
        if self.samples < len(task.labels):
            expected = f"at least one text for each of {len(task.labels)} labels"
            raise ConfigError("method.samples", expected=expected, got=self.samples)

    def max_texts(self, task: Task, models: Sequence[str]) -> int:
        """Return zero, as the parties write all texts."""
        del task, models
        return 0

    def compared(self, task: Task) -> dict[str, int]:
        """Return an empty mapping, since the query compares nothing."""
        del task
        return {}

    def start(self, tools: Tools) -> State[NoMemory]:
        """Return a state without texts."""
        del tools
        return State(memory=NoMemory())

    def step(self, state: State[NoMemory], tools: Tools) -> State[NoMemory]:
        """Ask the query, and release texts drawn from the answers by the experiment seed."""
        del state
        spec, answers = tools.spec(self.query), tools.ask(self.query, 0)
        assert isinstance(spec, TextSpec), "as planned"
        labels = list(tools.task.labels)
        texts, unreadable = text_codec.readable(answers, spec.texts, spec.longest, len(labels))
        remaining = np.full(len(labels), self.samples)
        if self.balanced:
            remaining = per_label(np.array([self.samples]), len(labels))[0]
        candidates: list[Candidate] = []
        for at in rng.experiment(tools.experiment_seed, "released").permutation(len(texts)).tolist():
            number, text = texts[at]
            if remaining[number] and len(candidates) < self.samples:
                remaining[number] -= 1
                candidates.append(Candidate(text=text, label=labels[number], model=self.name, round=0))
        missing = self.samples - len(candidates)
        notes = [f"{missing} of {self.samples} texts are missing: the parties answered with fewer"] if missing else []
        present = {candidate.label for candidate in candidates}
        notes += unreadable + [f"{label}: no text" for label in labels if label not in present]
        report = make_report(
            0, tools.models, requested={}, generated=(), candidates=len(candidates), work=(), notes=notes
        )
        return State(round=1, candidates=tuple(candidates), rounds=(report,), memory=NoMemory())
