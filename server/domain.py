"""Nouns of the coordinator: what is public about the data, and what the models write."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One synthetic text.

    Attributes:
        text: What the model wrote.
        label: The label that it was asked for.
        model: Name of the model that wrote it.
        round: Generation round, from 0.
        weight: How much it counts where a model is trained on the texts; 1 unless the method weighs them.
    """

    text: str
    label: str
    model: str
    round: int
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """How prompts speak of a task's texts: what changes between clinical notes and film reviews.

    Attributes:
        writer: Who writes such texts, for example "a doctor on duty"; empty leaves it open.
        style: How they are written, for example "terse, with abbreviations"; empty leaves it open.
        label: What a label says of a text, for example "diagnosis" or "sentiment".
    """

    writer: str = ""
    style: str = ""
    label: str = "label"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is public about the data to be imitated.

    Attributes:
        name: Short name, used in file names.
        kind: What one text is, as prompts say it, for example "emergency-department note".
        labels: Label to public description, in a fixed order: a label's position is its number on the wire.
        attributes: Public attributes, one of which is drawn at random for a zero-shot prompt.
        wording: How prompts speak of the texts.
    """

    name: str
    kind: str
    labels: dict[str, str]
    attributes: tuple[str, ...] = ()
    wording: Wording = field(default_factory=Wording)
