"""Sections that others share, and functions that look a setting up by name, copy a section, and convert it for YAML."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, TypeVar

from common import validate
from server.settings.bounds import Count, NotNegative, OptionalCount, Probability, Temperature, check_bounds, one_of

TARGET = "_target_"
"""Hydra's key for the class or function that builds a part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Settings of an object that Hydra builds from a `_target_`: an encoder, a language model, or a user's own object.

    The signature of the `_target_` is the schema of the settings (`build.py`).

    Attributes:
        place: Full name of the section, such as "llm.models.small".
        settings: `_target_` and its arguments.
    """

    place: str
    settings: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of the part, or an empty string."""
        return str(self.settings.get("name", ""))

    @property
    def model(self) -> str | None:
        """Name or path of the model that the part uses, or None."""
        return self.settings.get("model") or self.settings.get("name_or_path")


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodSettings:
    """Settings of one of our methods.

    Attributes:
        name: Name of the method in the plan and in run folders.
    """

    made_by: ClassVar[str] = ""
    place: ClassVar[str] = "method"
    auto_by_default: ClassVar[tuple[str, ...]] = ()
    """Settings that are `auto` unless a number is given; their default applies where no number can be chosen."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisSettings(MethodSettings):
    """Settings of a method that releases synthetic texts.

    Attributes:
        samples: N, total number of synthetic texts, at least 1.
    """

    samples: Count = 2000

    def __post_init__(self) -> None:
        check_bounds(self)


USUAL_TEXTS = 10
"""Number of texts that one prompt requests if their length is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptingSettings(SynthesisSettings):
    """Settings of a method whose texts the coordinator's language models write.

    Attributes:
        texts_per_request: Number of texts that one prompt requests; `auto` follows their length
            (`server/prepare/automatic.py`).
        temperature: Sampling temperature of the language models, in [0, 2].
        words: Requested length of a text in words, at least 1; None leaves it open. `auto` is the median length of the
            public texts if any model is asked in a chat, and None otherwise.
    """

    auto_by_default: ClassVar[tuple[str, ...]] = ("words",)

    texts_per_request: Count = 1
    temperature: Temperature = 1.0
    words: OptionalCount = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTuning:
    """Training of a small language model from a checkpoint.

    Attributes:
        start: Model to start from: a folder, or a name in the local cache; None starts from random weights.
        epochs: Number of passes over the texts, at least 1.
        learning_rate: Learning rate of AdamW; if None, 4e-4 from a checkpoint, as in the papers, 4e-3 from random
            weights.
        weight_decay: Weight decay of AdamW, at least 0.
        device: Device, as torch names it.
    """

    start: str | None = None
    epochs: Count = 5
    learning_rate: Annotated[float | None, validate.positive] = None
    weight_decay: NotNegative = 0.01
    device: str = "cpu"

    def __post_init__(self) -> None:
        check_bounds(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyTarget:
    """The guarantee that a run promises, and its plan is calibrated to: the settings `privacy`.

    Attributes:
        epsilon: ε of all answers together, all attempts included, above 0; inf adds no noise at all, for experiments
            only.
        delta: δ, between 0 and 1: a public constant, well below one over the number of private records.
        calibration: "tight", or "paper" for comparison, which sets sigma by the papers' formula; the true ε of this
            sigma is printed as well.
        unit: "sample", one record; or "user", all records of one user (named in the column `user`; without this column,
            each party is one user).
        max_records: m, at least 1: maximum number of records counted per user; further records are ignored.
    """

    epsilon: Annotated[float, partial(validate.positive, infinite=True)] = 4.0
    delta: Probability = 1e-5
    calibration: Annotated[str, one_of("tight", "paper")] = "tight"
    unit: Annotated[str, one_of("sample", "user")] = "sample"
    max_records: Count = 1

    def __post_init__(self) -> None:
        check_bounds(self)


NO_LABELS = "unlabelled"
"""Value of the setting `task.labels` for a task without labels, in which all texts form one population."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings:
    """Settings of one of our tasks."""

    made_by: ClassVar[str]
    place: ClassVar[str] = "task"


S = TypeVar("S")


def name_of(override: str) -> str:
    """Return the name of the setting, or group of settings, that an override in Hydra's grammar changes or removes."""
    return override.lstrip("+~").partition("=")[0].partition("@")[0]


def has(section: object, name: str) -> bool:
    """Return whether a section has a setting with this name."""
    if isinstance(section, Part):
        return name in section.settings
    if isinstance(section, Mapping):
        return name in section
    return is_dataclass(section) and any(field.name == name for field in fields(section))


def setting(section: object, name: str) -> Any:
    """Return the value of a setting, such as "task.labels" of all settings; None if there is no such setting."""
    first, _, rest = name.partition(".")
    if not has(section, first):
        return None
    if isinstance(section, Part):
        section = section.settings
    value = section[first] if isinstance(section, Mapping) else getattr(section, first)
    return setting(value, rest) if rest else value


def with_values(section: S, values: Mapping[str, Any]) -> S:
    """Return a copy of a section with new values for the named settings, such as {"privacy.epsilon": 4.0}."""
    for name, value in values.items():
        first, _, rest = name.partition(".")
        inner = with_values(setting(section, first), {rest: value}) if rest else value
        if isinstance(section, Part):
            section = replace(section, settings={**section.settings, first: inner})
        elif isinstance(section, Mapping):
            section = {**section, first: inner}  # type: ignore[assignment]
        else:
            section = replace(section, **{first: inner})  # type: ignore[type-var]
    return section


def as_mapping(value: Any) -> Any:
    """Return a section as lists and mappings, in the form for YAML and Hydra."""
    if isinstance(value, Part):
        return as_mapping(value.settings)
    if isinstance(value, Mapping):
        return {name: as_mapping(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_mapping(inner) for inner in value]
    if is_dataclass(value):
        target = {TARGET: made_by} if (made_by := getattr(value, "made_by", "")) else {}
        return target | {field.name: as_mapping(getattr(value, field.name)) for field in fields(value)}
    return value
