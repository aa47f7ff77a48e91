"""Sources of a task: its public description, public texts, and held-out texts for evaluation.

Private records are not here: a party reads its own file (`client/records.py`), and a simulation distributes them
(`simulations/federation/parties.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Protocol

from common.domain import UNLABELLED, Record
from common.errors import ConfigError, DataError
from common.labelled_files import named_by, read_records, read_texts, read_topics
from common.sections import bodies, sections
from server.domain import Example, Task
from server.settings.sections import NO_LABELS
from server.settings.tasks import DemoLettersSettings, DemoMessagesSettings, DemoNotesSettings, LabelledFilesSettings
from server.tasks import demo_letters, demo_messages, demo_notes
from server.tasks.description import task_from
from server.tasks.grammar import load_grammar
from server.tasks.span_files import read_examples, read_spans, read_types


class Source(Protocol):
    """Source of a task's data."""

    def task(self) -> Task:
        """Return the public description of the data."""

    def public_texts(self) -> list[str]:
        """Return texts from which the built-in models may learn."""

    def public_examples(self) -> list[Example]:
        """Return the public texts that a prompt may show, with their topics; may be empty."""

    def held_out(self) -> list[Record]:
        """Return real texts that do not belong to any party; may be empty."""

    def held_out_spans(self) -> list[Example]:
        """Return the held-out texts that have spans; called only if the task has types of spans."""


def _records(records: list[Record], labels: str | None) -> list[Record]:
    """Return a demo's records, without labels if `labels` is set."""
    return records if labels is None else [replace(record, label=UNLABELLED) for record in records]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoNotes(DemoNotesSettings):
    """The demo: artificial hospital notes from our own grammar, without any real patient."""

    def task(self) -> Task:
        """Return the public description of the notes."""
        spans = demo_notes.SPANS if self.spans else {}
        task = replace(load_grammar(self.language).task, labels_per_text=self.labels_per_text, spans=spans)
        return task if self.labels is None else task.without_labels()

    def public_texts(self) -> list[str]:
        """Return texts from which the built-in models may learn."""
        return demo_notes.public_text(self.public_notes, self.corpus_seed, self.language)

    def public_examples(self) -> list[Example]:
        """Return public texts with their topics: complaints on other wards, and the four conditions."""
        examples = demo_notes.public_examples(self.public_notes, self.corpus_seed, self.language)
        return list(examples) if self.spans else [replace(example, spans=None) for example in examples]

    def held_out(self) -> list[Record]:
        """Return notes that do not belong to any party."""
        notes = demo_notes.held_out_notes(self.test_records, self.corpus_seed, self.language, self.labels_per_text)
        return _records(notes, self.labels)

    def held_out_spans(self) -> list[Example]:
        """Return the same notes with their spans."""
        return demo_notes.held_out_spans(self.test_records, self.corpus_seed, self.language, self.labels_per_text)

    def private(self, hospital: int, count: int) -> list[Record]:
        """Return `count` private notes from one hospital; hospitals are numbered from 0."""
        diagnoses = self.labels_per_text
        notes = demo_notes.private_notes(hospital, count, self.corpus_seed, self.language, diagnoses)
        return _records(notes, self.labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoMessages(DemoMessagesSettings):
    """The demo for small real models: artificial messages to a hospital's desks, from our own grammar."""

    def task(self) -> Task:
        """Return the public description of the messages."""
        return demo_messages.TASK if self.labels is None else demo_messages.TASK.without_labels()

    def public_texts(self) -> list[str]:
        """Return texts from which the built-in models may learn."""
        return [example.text for example in self.public_examples()]

    def public_examples(self) -> list[Example]:
        """Return public texts with their topics: the places to which people write."""
        return list(demo_messages.public_messages(self.public_messages, self.corpus_seed))

    def held_out(self) -> list[Record]:
        """Return messages that do not belong to any party."""
        return _records(demo_messages.held_out_messages(self.test_records, self.corpus_seed), self.labels)

    def held_out_spans(self) -> list[Example]:
        """Return an empty list, since the messages have no spans."""
        return []

    def private(self, hospital: int, count: int) -> list[Record]:
        """Return `count` private messages to one hospital; hospitals are numbered from 0."""
        return _records(demo_messages.private_messages(hospital, count, self.corpus_seed), self.labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoLetters(DemoLettersSettings):
    """The demo of long texts: artificial discharge letters in sections, from our own grammar."""

    def task(self) -> Task:
        """Return the public description of the letters."""
        return replace(demo_letters.TASK, labels_per_text=self.sections_per_text)

    def public_texts(self) -> list[str]:
        """Return the sections from which the built-in models may learn."""
        return [example.text for example in self.public_examples()]

    def public_examples(self) -> list[Example]:
        """Return public sections with their headings, from other wards' letters."""
        return list(demo_letters.public_sections(self.public_notes, self.corpus_seed))

    def held_out(self) -> list[Record]:
        """Return letters that do not belong to any party."""
        return demo_letters.held_out_letters(self.test_records, self.corpus_seed)

    def held_out_spans(self) -> list[Example]:
        """Return an empty list, since the letters have no spans."""
        return []

    def private(self, hospital: int, count: int) -> list[Record]:
        """Return `count` private letters from one hospital; hospitals are numbered from 0."""
        return demo_letters.private_letters(hospital, count, self.corpus_seed)


Demo = DemoNotes | DemoMessages | DemoLetters
"""A source that can generate private texts for any hospital."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledFiles(LabelledFilesSettings):
    """Files with the columns `text,label`, or `text` alone (CSV, JSON Lines or Parquet), or FHIR files."""

    def __post_init__(self) -> None:
        """Raise `ConfigError` if the public texts are the private records, since prompts quote public texts."""
        LabelledFilesSettings.__post_init__(self)  # super() does not work in a dataclass with slots
        if self.train and self.public_text and Path(self.train).resolve() == Path(self.public_text).resolve():
            raise ConfigError(
                "task.public_text",
                expected="a file of public text",
                got="the private records, task.train",
                where=self.public_text,
                do="Name another file, or none: task.public_text=null",
            )

    def task(self) -> Task:
        """Return the public description of the data.

        Raises:
            ConfigError: No labels are named, or a setting is invalid.
        """
        if not self.labels and not self.sections:
            raise ConfigError(
                "task.labels",
                expected="label: public description",
                got="none",
                do="Name them in the task's YAML or as 'task.labels={flu: influenza, cold: a common cold}', or say "
                f"that texts have none: task.labels={NO_LABELS}; only a simulation with task.train=PATH takes them "
                "from the private file",
            )
        return task_from(self)

    def public_texts(self) -> list[str]:
        """Return texts from which the built-in models may learn.

        Raises:
            ConfigError: `public_text` is not set.
        """
        if not self.public_text:
            raise ConfigError(
                "task.public_text",
                expected="a file of public text for the built-in models to learn from",
                got="none",
                do="Set task.public_text=PATH, or choose models that need none, such as llm=anthropic",
            )
        if self.sections:
            return [example.text for example in self.public_examples()]
        with named_by("task.public_text"):
            return read_texts(self.public_text)

    def public_examples(self) -> list[Example]:
        """Return the public texts that a prompt may show, with their topics; none if `public_text` is not set."""
        if not self.public_text:
            return []
        with named_by("task.public_text"):
            topics = read_topics(self.public_text)
            spans = read_spans(self.public_text, self.spans) if self.spans else []
        examples = [
            Example(text=text, topic=topic and topic.strip().replace("_", " "), spans=of_text)
            for (text, topic), of_text in zip_longest(topics, spans)
        ]
        return self._in_sections(examples) if self.sections else examples

    def _in_sections(self, examples: list[Example]) -> list[Example]:
        """Return the sections of public texts, with their headings as topics.

        A text without headings is one section, whose heading is the text's own topic.
        """
        parts = []
        for example in examples:
            headed = sections(example.text, self.sections)
            for part, body in zip(headed, bodies(example.text, headed), strict=True):
                parts.append(Example(text=body, topic=part.heading, section=True))
            parts += [] if headed else [replace(example, section=True)]
        return parts

    def held_out(self) -> list[Record]:
        """Return the records from the file of test texts; none if `test` is not set."""
        if not self.test:
            return []
        with named_by("task.test"):
            return self.read(self.test)

    def held_out_spans(self) -> list[Example]:
        """Return the rows with spans from the file of test texts; none if `test` is not set."""
        if not self.test:
            return []
        with named_by("task.test"):
            return read_examples(self.test, self.spans or ())

    def read(self, path: str) -> list[Record]:
        """Return the records of a labelled file for this task; texts in sections need no labels.

        Raises:
            DataError: The file is invalid, or a text has none of the task's headings; the message states where.
        """
        task = self.task()
        records = read_records(path, [UNLABELLED] if task.sectioned else list(task.labels), show_names=True)
        if task.sectioned:
            check_sections(records, task, path)
        return records


def read_test_records(path: Path, task: Task) -> list[Record]:
    """Return the records of a file with held-out texts, which is not among a run's settings.

    Raises:
        DataError: The file is invalid, a text has none of the task's headings, or no text has a label of the task.
    """
    records = read_records(path, labelled=task.labelled and not task.sectioned, show_names=True)
    if task.sectioned:
        check_sections(records, task, path)
    elif not {label for record in records for label in record.labels} & set(task.labels):
        expected = f"texts with labels of the run: {', '.join(task.labels)}"
        raise DataError("labels", expected=expected, got="none with one of them", where=path)
    return records


def check_sections(records: Sequence[Record], task: Task, path: object) -> None:
    """Raise `DataError` if a text has none of the task's headings.

    The message contains the number of its record, but no word of the text.
    """
    for number, record in enumerate(records, start=1):
        if not sections(record.text, task.labels):
            expected = f"a line that begins with one of the headings {', '.join(task.labels)}, and text under it"
            raise DataError("text", expected=expected, got="none", where=f"{path}, record {number}")


def unmarked_types(source: Source) -> str | None:
    """Return a warning about planned types of spans that no public text marks; None if all types are marked."""
    types = source.task().spans
    examples = source.public_examples() if types else []
    marked = {span.type for example in examples for span in example.spans or ()}
    missing = [name for name in types if name not in marked]
    if not missing or not examples:
        return None
    said = f"no public text marks {', '.join(missing)}: the built-in models mark none of it"
    path = source.public_text if isinstance(source, LabelledFiles) else None
    if others := sorted(read_types(path) - set(types)) if path else []:
        said += f"; task.public_text marks {', '.join(others)}, which task.spans leaves out"
    return said
