"""Nouns of the coordinator: what is public about the data, what the models write, what a plan is made for."""

import math
from dataclasses import dataclass, field

from common import validate


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyTarget:
    """The guarantee that a plan is calibrated to.

    Attributes:
        epsilon: For all answers together, all attempts included; infinite: no noise.
        delta: A public constant.
        unit: "sample" or "user": whose presence is hidden.
        max_records: m, records of one unit that count.
        calibration: "tight" or "paper"; see `server.planning.calibration`.
    """

    epsilon: float = math.inf
    delta: float = 1e-5
    unit: str = "sample"
    max_records: int = 1
    calibration: str = "tight"


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """The parties of a run, and what a plan assumes of them.

    Attributes:
        parties: L, number of parties.
        max_dropouts: Parties that may be missing from a sum.
        colluders: Other parties that may tell the coordinator their noise.
        max_attempts: Attempts at an answer, all of them paid for.
    """

    parties: int = 1
    max_dropouts: int = 0
    colluders: int = 0
    max_attempts: int = 1

    def __post_init__(self) -> None:
        validate.integers(1, parties=self.parties)
