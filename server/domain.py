"""Basic terms of the coordinator: task, public and synthetic texts, and membership."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

from common import validate
from common.domain import UNLABELLED, Record, is_one_population
from common.errors import ConfigError
from common.file_diagnosis import SEPARATOR
from common.sections import Sections, bodies, sections
from server.documents.codec import ABSENT, from_json
from server.documents.files import Document
from server.documents.rounds import RoundReport, first_round
from server.settings.sections import NO_LABELS
from server.settings.sections import PrivacyTarget as PrivacyTarget  # noqa: PLC0414 promised to methods of your own
from server.spans import Spans


class Labelled:
    """An object that has a label or a set of labels: a text, or an order for texts."""

    __slots__ = ()
    label: str
    more: tuple[str, ...] | None

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels of the object."""
        return self.label, *(self.more or ())

    @property
    def named(self) -> str:
        """The label, or all labels joined into one string."""
        return label_set(self.labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate(Labelled, Document):
    """One synthetic text.

    Attributes:
        text: The model's text.
        label: The requested label, or the most probable one if the method computes probabilities; in a task without
            labels `UNLABELLED`, which is never written to a file.
        model: Name of the model that wrote it.
        round: Generation round, from 0.
        weight: Weight of the text in training; 1 unless the method assigns weights.
        probabilities: Probability of each label, for training in place of `label`; None if the method computes none.
        more: Further labels that were requested together with `label`; None if texts have one label each. In JSON,
            `labels` contains all labels and replaces `label`.
        spans: Entities of the text in order; None if the task has no types of spans.
        sections: Sections of the text in order; None if the task has none. The text's labels are then the headings,
            which JSON does not repeat.
    """

    text: str
    label: str = field(metadata={"absent": UNLABELLED})
    model: str
    round: int
    weight: float = 1.0
    probabilities: Mapping[str, float] | None = field(default=None, metadata=ABSENT)
    more: tuple[str, ...] | None = field(default=None, metadata=ABSENT)
    spans: Spans | None = field(default=None, metadata=ABSENT)
    sections: Sections | None = field(default=None, metadata=ABSENT)

    def to_json(self) -> dict[str, Any]:
        """Return the text as strict JSON, with its fields in the order of their declaration."""
        made = Document.to_json(self)  # super() does not work in a dataclass with slots
        if made.pop("more", None) is None:
            return made
        if self.sections is not None:
            return {name: value for name, value in made.items() if name != "label"}
        return {"labels" if name == "label" else name: made[name] for name in made} | {"labels": list(self.labels)}

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read a text from its JSON form, as `Document.from_json` does."""
        if isinstance(value, Mapping) and isinstance(labels := value.get("labels"), list):
            first, *more = labels
            value = {**value, "label": first, "more": more}
        if isinstance(value, Mapping) and isinstance(parts := value.get("sections"), list):
            first, *more = (part["heading"] for part in parts)
            value = {**value, "label": first, "more": more}
        return from_json(cls, value)

    @classmethod
    def in_sections(cls, text: str, parts: Sections, *, model: str, round_number: int) -> Self:
        """Return a text made of at least one section."""
        first, *more = (part.heading for part in parts)
        return cls(text=text, label=first, model=model, round=round_number, more=tuple(more), sections=parts)


def has_label_sets(texts: Iterable[Candidate]) -> bool:
    """Return whether the texts were requested with sets of labels, as in a task with several labels per text."""
    return any(text.more is not None for text in texts)


def label_set(labels: Iterable[str]) -> str:
    """Return the labels of one text as a single string; for one label this is its name."""
    return f"{SEPARATOR} ".join(labels)


ClassifierInput = TypeVar("ClassifierInput", Candidate, Record)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A public text, which any prompt may show.

    Attributes:
        text: The text.
        topic: The text's topic, if the source names one; it may be one of the task's labels.
        section: Whether the topic is the heading of a section, as in a task whose texts have sections.
        spans: Entities of the text; None if the source names none.
    """

    text: str
    topic: str | None = None
    section: bool = False
    spans: Spans | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """Words that prompts use for a task's texts, since clinical notes and film reviews need different ones.

    Attributes:
        writer: Author of such texts, for example "a doctor on duty"; empty if unspecified.
        style: Style of the texts, for example "terse, with abbreviations"; empty if unspecified.
        label: Meaning of a label, for example "diagnosis" or "sentiment".
        plural: Plural of the task's kind; if empty, it is formed by the rules of English (`server.llm.render.plural`).
    """

    writer: str = ""
    style: str = ""
    label: str = "label"
    plural: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Public description of the data to imitate.

    Attributes:
        name: Short name, used in file names.
        kind: Kind of text, as prompts name it, for example "emergency-department note".
        labels: Public description of each label, in a fixed order: a label's index represents it in messages. A task
            without labels has `UNLABELLED` alone, described by the kind of text.
        attributes: Public attributes, one of which is drawn at random for a zero-shot prompt.
        wording: Words for the texts in prompts.
        language: Language of the texts, from `common.personal_patterns.LANGUAGES`: it determines what looks like
            personal information.
        labels_per_text: Maximum number of labels of a text; 1 means that each text has exactly one label.
        spans: Public description of each type of span that models mark in the texts; empty for texts without spans.
        sectioned: Whether a text has sections. The labels are then the headings, and each occurs at most once per text.

    Raises:
        ConfigError: `labels_per_text` exceeds the number of labels, or a label's name cannot be used.
    """

    name: str
    kind: str
    labels: dict[str, str]
    attributes: tuple[str, ...] = ()
    wording: Wording = field(default_factory=Wording)
    language: str = "english"
    labels_per_text: int = 1
    spans: Mapping[str, str] = field(default_factory=dict)
    sectioned: bool = False

    def __post_init__(self) -> None:
        validate.on_one_line("task.labels", self.labels)
        if self.labels_per_text > max(1, len(self.labels)):
            expected = f"at most the number of labels, {len(self.labels)}"
            raise ConfigError("task.labels_per_text", expected=expected, got=self.labels_per_text)
        if self.several and any(SEPARATOR in label for label in self.labels):
            expected = f"names without {SEPARATOR!r}, which stands between the labels of a text"
            raise ConfigError("task.labels", expected=expected, got="one with it")

    @property
    def several(self) -> bool:
        """Whether a text may have several labels, or sections under several headings."""
        return self.labels_per_text > 1 or self.sectioned

    @property
    def labelled(self) -> bool:
        """Whether texts have labels. If not, prompts name no labels, and every record takes part."""
        return not is_one_population(self.labels)

    @property
    def one_label(self) -> bool:
        """Whether each text has exactly one of the labels."""
        return self.labelled and not self.several

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings of sections; empty if texts have none."""
        return tuple(self.labels) if self.sectioned else ()

    def without_labels(self) -> "Task":
        """Return the same task with all texts as one population."""
        return replace(self, labels={UNLABELLED: self.kind}, wording=replace(self.wording, label=Wording().label))

    def check_labelled(self, setting: str, purpose: str, do: str) -> None:
        """Raise `ConfigError` if the task has no labels, which the setting, such as "method fusegen", needs.

        In the message, `purpose` follows "labels, ", and `do` is the advice.
        """
        if not self.labelled:
            raise ConfigError(setting, expected=f"labels, {purpose}", got=f"none (task.labels={NO_LABELS})", do=do)

    def check_single(self, setting: str, purpose: str, do: str) -> None:
        """Raise `ConfigError` if texts may have several labels or sections, which the setting does not support.

        The arguments are the same as those of `check_labelled`.
        """
        self.check_whole(setting, "as it reads or writes each text as a whole", do)
        if self.several:
            got = f"up to {self.labels_per_text} (task.labels_per_text)"
            raise ConfigError(setting, expected=f"one label a text, {purpose}", got=got, do=do)

    def check_whole(self, setting: str, reason: str, do: str) -> None:
        """Raise `ConfigError` if texts have sections, which the setting does not support.

        In the message, `reason` follows "texts without sections, ".
        """
        if self.sectioned:
            expected, got = f"texts without sections, {reason}", f"{len(self.labels)} headings (task.sections)"
            raise ConfigError(setting, expected=expected, got=got, do=do)

    def check_samples(self, samples: int, rounds: int) -> None:
        """Raise `ConfigError` if `samples` texts in all rounds are too few for one of each label in each round."""
        if samples // rounds < len(self.labels):
            expected = f"one text for each of {len(self.labels)} labels in each of {rounds} rounds"
            raise ConfigError("method.samples", expected=expected, got=samples)

    def check_unmarked(self, setting: str, reason: str, do: str) -> None:
        """Raise `ConfigError` if the task has types of spans, which the setting leaves unmarked.

        In the message, `reason` follows "no spans, ".
        """
        if self.spans:
            raise ConfigError(setting, expected=f"no spans, {reason}", got=f"task.spans={', '.join(self.spans)}", do=do)

    def classifier_inputs(self, texts: Iterable[ClassifierInput]) -> list[ClassifierInput]:
        """Return candidates or records reduced to what a classifier reads.

        This is the whole text. A text in sections is replaced by its sections, each with its heading as the label.
        """
        if self.sectioned:
            return [part for text in texts for part in self._parts(text)]
        return list(texts)

    def labels_of(self, record: Record) -> list[str]:
        """Return the labels of a record that count, or the headings of its sections."""
        if self.sectioned:
            return [part.heading for part in sections(record.text, self.labels)]
        return list(record.labels[: self.labels_per_text])

    def _parts(self, text: ClassifierInput) -> Iterator[ClassifierInput]:
        parts = text.sections if isinstance(text, Candidate) else sections(text.text, self.labels)
        without: dict[str, Any] = {"sections": None} if isinstance(text, Candidate) else {}
        for part, body in zip(parts or (), bodies(text.text, parts or ()), strict=True):
            yield replace(text, text=body, label=part.heading, more=None, **without)


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """The parties of a run, and a plan's assumptions about them.

    A run takes the values from its settings `federation`; the defaults are meant for testing your own method.

    Attributes:
        parties: L, number of parties.
        max_dropouts: Maximum number of parties that may be missing from a sum.
        colluders: Number of other parties that may reveal their noise to the coordinator without exceeding epsilon.
        max_attempts: Maximum number of attempts at one answer; the plan accounts for the privacy cost of all attempts.
    """

    parties: int = 1
    max_dropouts: int = 0
    colluders: int = 0
    max_attempts: int = 1

    def __post_init__(self) -> None:
        validate.integers(1, parties=self.parties)
        validate.integers(0, colluders=self.colluders)


def number_from_one(
    rounds: Sequence[RoundReport], texts: Sequence[Candidate]
) -> tuple[list[RoundReport], list[Candidate]]:
    """Return a run folder's rounds and texts, counted from 1, even if an earlier version of Caucus counted from 0."""
    if not rounds or rounds[0].round != 0:
        return list(rounds), list(texts)
    first = first_round({text.round for text in texts}, len(rounds))
    return (
        [report.for_readers() for report in rounds],
        [replace(text, round=text.round + first) for text in texts],
    )
