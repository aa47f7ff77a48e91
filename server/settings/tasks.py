"""Settings of the tasks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from common import validate
from common.domain import MOST_LABELS
from common.errors import ConfigError
from common.personal_patterns import LANGUAGES
from common.sections import check_headings
from server.settings.bounds import Count, Natural, check_bounds, one_of, whole
from server.settings.sections import NO_LABELS, TaskSettings

REMOVED = {
    "task.structure": "Leave it out: this version has no texts that are JSON objects. Write plain text or sections"
}
"""Advice on settings of earlier versions, keyed by name; null, which `config.yaml` of an older run has, still reads."""

NOTES_LANGUAGES = ("english", "german", "french")
"""Languages in which the demo notes can be generated."""
LabelsPerText = Annotated[int, whole(1, MOST_LABELS)]


def check_labels_per_text(number: int, labels: object) -> None:
    """Raise a ConfigError if texts may have several labels in a task without labels."""
    if number > 1 and labels == NO_LABELS:
        raise ConfigError("task.labels_per_text", expected=f"1 with task.labels={NO_LABELS}", got=number)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSettings(TaskSettings):
    """Settings common to all demo tasks.

    Attributes:
        records_per_party: Number of private texts per hospital, at least 0.
        test_records: Number of held-out texts, in the styles of all hospitals; with 0, no accuracy is measured.
        corpus_seed: Seed from which the corpus is generated, at least 0.
        labels: None for the corpus's own labels, or "unlabelled" for texts without labels.
    """

    records_per_party: Natural = 300
    test_records: Natural = 400
    corpus_seed: Natural = 0
    labels: Any = None

    def __post_init__(self) -> None:
        check_bounds(self)
        if self.labels not in (None, NO_LABELS):
            do = "Choose task=csv for labels of your own"
            raise ConfigError("task.labels", expected=f"null or {NO_LABELS} with a demo's task", got="others", do=do)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoNotesSettings(DemoSettings):
    """Invented hospital notes: four confusable diagnoses, a house style for each hospital, no real patient.

    Attributes:
        public_notes: Number of public texts, at least 1: notes from other wards and guideline-like prose.
        language: Language of the notes: "english", "german" or "french" (`server/tasks/README.md`).
        labels_per_text: Maximum number of diagnoses per note, at most 4; above 1, a patient may have several.
        spans: Whether the models mark findings, measurements and treatments in their notes (`server/tasks/README.md`).
    """

    made_by: ClassVar[str] = "server.tasks.sources.DemoNotes"

    public_notes: Count = 3000
    language: Annotated[str, one_of(*NOTES_LANGUAGES)] = "english"
    labels_per_text: LabelsPerText = 1
    spans: bool = False

    def __post_init__(self) -> None:
        DemoSettings.__post_init__(self)
        check_labels_per_text(self.labels_per_text, self.labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoMessagesSettings(DemoSettings):
    """Invented messages to a hospital's six desks, each of one or two sentences, which small real models can write.

    Attributes:
        public_messages: Number of public messages, at least 1, to other organisations, such as a library or a garage.
    """

    made_by: ClassVar[str] = "server.tasks.sources.DemoMessages"

    public_messages: Count = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoLettersSettings(DemoSettings):
    """Invented discharge letters of 300 to 1,500 words in sections, whose order differs between hospitals.

    Attributes:
        labels: Always None, since the headings are the labels.
        public_notes: Number of public letters, from other wards, at least 1.
        sections_per_text: Maximum number of sections per letter, both counted in records and written, from 1 to 7.
    """

    made_by: ClassVar[str] = "server.tasks.sources.DemoLetters"

    records_per_party: Natural = 200
    test_records: Natural = 100
    public_notes: Count = 300
    sections_per_text: Annotated[int, whole(1, 7)] = 7

    def __post_init__(self) -> None:
        DemoSettings.__post_init__(self)
        if self.labels is not None:
            raise ConfigError("task.labels", got=self.labels, do="Leave it out: the letters' headings are the labels")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledFilesSettings(TaskSettings):
    """CSV, JSON Lines or Parquet files with the columns text,label, or text alone; or FHIR.

    Attributes:
        name: Short name of the task, which may be part of a file name.
        kind: Kind of text, in the words of prompts, such as "discharge letter".
        labels: Public description of each label, or "unlabelled" for texts without labels, whose files need no label
            column; None takes the labels from the training file, in a simulation only.
        train: Private records, which a simulation deals out to the parties; a coordinator has none.
        test: Held-out texts, or None.
        public_text: File with one text per line, from which models may learn or take examples; or a file with a `text`
            column and, for models that take examples, a column of topics, `topic` or `label`.
        attributes: Public properties of a text, of which a zero-shot prompt mentions one at random.
        wording: Words for the texts in prompts: `writer`, such as "a doctor on duty", `style`, such as "terse, with
            abbreviations", and `label`, the meaning of a label, such as "diagnosis"; None leaves a line out. `plural`
            is the plural of `kind`; if None, it is formed by English rules, which fail for "diagnosis" and for other
            languages.
        language: Language of the texts, of which personal information is detected: one of `LANGUAGES`.
        labels_per_text: Maximum number of labels per text, from 1 to 64. Above 1, files may have `labels` in place of
            `label`; if a record has more labels, only the first ones count (`server/tasks/README.md`).
        spans: Public description of each type of span that models mark in the texts, such as `{drug: name of a
            medicine}`; `test` and `public_text` may contain such spans in JSON Lines (`server/tasks/README.md`).
        sections: Public description of each heading, for texts in sections, in place of `labels`; files then need no
            labels (`server/tasks/README.md`).
        sections_per_text: Maximum number of sections per text, counted in records and written; None: all headings.
    """

    made_by: ClassVar[str] = "server.tasks.sources.LabelledFiles"

    name: str
    kind: str
    labels: Any = None
    train: str | None = None
    test: str | None = None
    public_text: str | None = None
    attributes: tuple[str, ...] = ()
    wording: Any = None
    language: Annotated[str, one_of(*LANGUAGES)] = "english"
    labels_per_text: LabelsPerText = 1
    spans: Mapping[str, Any] | None = None
    sections: Any = None
    sections_per_text: Annotated[int | None, whole(1, MOST_LABELS)] = None

    def __post_init__(self) -> None:
        check_bounds(self)
        check_labels_per_text(self.labels_per_text, self.labels)
        if self.sections:
            self._check_sections()
        elif self.sections_per_text is not None:
            raise ConfigError("task.sections_per_text is set without task.sections", do="Set both, or neither")

    def _check_sections(self) -> None:
        headings = check_headings("task.sections", list(self.sections))
        if self.sections_per_text is not None:
            validate.integers_in(1, len(headings), sections_per_text=self.sections_per_text)
        beside = {"labels": self.labels, "spans": self.spans}
        beside["labels_per_text"] = self.labels_per_text - 1
        for name, value in beside.items():
            if value:
                expected = "none beside task.sections: the labels are the headings, and texts are plain"
                raise ConfigError(f"task.{name}", expected=expected, got="some", do=f"Leave out task.{name}")


TASKS: tuple[type[TaskSettings], ...] = (
    DemoNotesSettings,
    DemoMessagesSettings,
    DemoLettersSettings,
    LabelledFilesSettings,
)
