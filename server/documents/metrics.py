"""`metrics.json`: figures in groups, as the evaluation writes them and the report reads them.

A figure is a `Figure` or a plain number. A mapping of figures is a group, with a "definition" and a "note"; the name of
a figure in a nested mapping begins with the name of that mapping. "simulation_only" marks all figures in a mapping as
computed from private records. Users may add groups (`evaluation.own`), so the content of the file is kept unchanged.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeGuard, final

from server.documents.codec import ABSENT, OTHERS, from_json, is_number
from server.documents.files import Document

GENERAL = "in general"
"""Title for the group of figures that belong to no other group."""
_ABOUT = {"definition", "note", "simulation_only", "interval", "reason", "value", "rows", "confusion"}

Interval = tuple[float, float]
Group = dict[str, Any]
"""Figures, nested groups, and what describes them, keyed by name."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Figure(Document):
    """One figure.

    Attributes:
        name: The figure's name within its group; "" in the group itself, where its key is its name.
        value: The figure's value; None if it could not be computed.
        interval: The figure's 95% interval.
        rows: Number of texts or records from which it was computed.
        noise: Standard deviation of the noise in the value, for a noised answer.
        definition: Definition of this figure, in addition to its group's.
        reason: Why there is no value.
        simulation_only: Whether it was computed from private records.
    """

    name: str = field(default="", metadata={"absent": ""})
    value: float | None = None
    interval: Interval | None = None
    rows: int | None = None
    noise: float | None = field(default=None, metadata=ABSENT)
    definition: str | None = field(default=None, metadata=ABSENT)
    reason: str | None = field(default=None, metadata=ABSENT)
    simulation_only: bool = field(default=False, metadata={"absent": False})

    @property
    def finite(self) -> float | None:
        """The value, if it is a finite number."""
        return finite(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureGroup(Document):
    """Figures with a common title, definition and note.

    Attributes:
        title: Title of the group.
        definition: Definition of its figures.
        test: Name of the file of test texts, if the figures were computed in a later evaluation.
        note: Remarks, and other texts of the group.
        simulation_only: Whether all of its figures were computed from private records.
        figures: The figures in the file's order.
    """

    title: str
    definition: str | None
    test: str | None = None
    note: str | None
    simulation_only: bool
    figures: tuple[Figure, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Gain(Document):
    """Difference between two figures on the same test texts, such as the gain in accuracy over the models alone.

    Attributes:
        value: The difference; above 0 is an improvement.
        interval: The difference's 95% interval.
        texts: Number of texts on each side.
    """

    value: float
    interval: Interval
    texts: int

    @classmethod
    def of_difference(cls, figure: Figure, texts: int | None) -> Self | None:
        """Return a difference with the number of texts on each side; None if any of it is missing."""
        if figure.value is None or figure.interval is None or texts is None:
            return None
        return cls(value=figure.value, interval=figure.interval, texts=texts)

    @property
    def clear(self) -> bool:
        """Whether the whole interval is above 0."""
        return self.interval[0] > 0

    @property
    def loss(self) -> bool:
        """Whether the whole interval is below 0."""
        return self.interval[1] < 0


@dataclass(frozen=True, slots=True)
class Metrics(Document):
    """The `metrics.json` document.

    Attributes:
        content: The unchanged content of the file.
    """

    FILE: ClassVar[str] = "metrics.json"

    content: Mapping[str, Any] = field(default_factory=dict, metadata=OTHERS)

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read the document back, as `Document.from_json` does."""
        metrics = from_json(cls, value)
        _ = metrics.groups, metrics.nearest_texts  # are in this format
        return metrics

    def adding(self, more: Mapping[str, Any]) -> "Metrics":
        """Return a copy with these figures and groups added; they replace existing ones of the same names."""
        return Metrics({**self.content, **more})

    @property
    def groups(self) -> tuple[FigureGroup, ...]:
        """All groups that have figures: first the figures outside any group, then the others in the file's order."""
        single = {name: value for name, value in self.content.items() if not _is_group(value)}
        grouped = {name: value for name, value in self.content.items() if _is_group(value)}
        made = [_figure_group(GENERAL, single), *(_figure_group(name, value) for name, value in grouped.items())]
        return tuple(group for group in made if group.figures)

    @property
    def named(self) -> dict[str, Figure]:
        """All figures, keyed by "group's title: figure's name"."""
        return {f"{group.title}: {figure.name}": figure for group in self.groups for figure in group.figures}

    @property
    def finite(self) -> dict[str, float]:
        """The finite values among `named`."""
        return {name: value for name, figure in self.named.items() if (value := figure.finite) is not None}

    def group(self, *path: str) -> Mapping[str, Any]:
        """Return a group by its name, after the names of the groups around it; empty if it is none."""
        inner: Any = self.content
        for name in path:
            inner = inner.get(name) if isinstance(inner, Mapping) else None
        return inner if isinstance(inner, Mapping) else {}

    def figure(self, *path: str) -> Figure:
        """Return a figure by the names of its groups and its own; without a value if it is none, or not finite."""
        entry = self._entry(path)
        figure = _as_figure(path[-1], entry) if _is_figure(entry) else Figure()
        if figure.value is not None and figure.finite is None:
            return Figure()
        marked = any(self.group(*path[:depth]).get("simulation_only") for depth in range(1, len(path)))
        return replace(figure, simulation_only=True) if marked else figure

    def count(self, *path: str) -> int | None:
        """Return a whole number by the names of its groups and its own; None if it is none, or negative."""
        entry = self._entry(path)
        return entry if _is_count(entry) else None

    def text(self, *path: str) -> str | None:
        """Return a text, such as a definition, by the names of its groups and its own; None if it is none."""
        entry = self._entry(path)
        return entry if isinstance(entry, str) else None

    def _entry(self, path: Sequence[str]) -> object:
        *groups, name = path
        return self.group(*groups).get(name)

    @property
    def test(self) -> str | None:
        """Name of the file of test texts; None if the run's own test texts were used."""
        return self.text("test")

    @property
    def nearest_texts(self) -> tuple[tuple[int, int], ...]:
        """Line (from 0) of each text that is nearest to many held-out texts, and their number, most first."""
        pairs = self.content.get("nearest_texts")
        whole = pairs if isinstance(pairs, list) else []
        return tuple((line, votes) for line, votes in whole if _is_count(line) and _is_count(votes))

    @property
    def confusion(self) -> dict[str, dict[str, int]]:
        """Number of test texts for each true label and each label that the small model predicts, without zeros.

        Empty in earlier versions, and if anything in it is not a positive count.
        """
        rows = self.group("synthetic", "confusion")
        counts = [count for row in rows.values() for count in (row.values() if isinstance(row, Mapping) else [None])]
        whole = all(_is_count(count) and count for count in counts)
        return {label: dict(row) for label, row in rows.items() if row} if whole else {}

    @property
    def disclosed(self) -> str | None:
        """Names of features through which the texts disclose records; empty if there are none, None if not tested."""
        features = self.figure("disclosures", "found").value
        if features is None:
            return None
        return (self.text("disclosures", "features") or "a feature") if features else ""


def shareable(figures: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, float]]:
    """Yield all finite numbers of a document with their names, joined by slashes.

    Figures that only a simulation can compute are left out, and so are confusion matrices, which have a number for each
    pair of labels.
    """
    if figures.get("simulation_only"):
        return
    for name, value in figures.items():
        if isinstance(value, Mapping) and name != "confusion":
            yield from shareable(value, f"{above}{name}/")
        elif (number := finite(value)) is not None:
            yield f"{above}{name}", number


def finite(value: object) -> float | None:
    """Return the value as a finite float; None for anything else."""
    return float(value) if is_number(value) and math.isfinite(value) else None


def _figure_group(title: str, content: Mapping[str, Any]) -> FigureGroup:
    marked = bool(content.get("simulation_only"))
    notes = (
        value if key == "note" else f"{str(key).replace('_', ' ')}: {value}"
        for key, value in content.items()
        if isinstance(value, str) and key != "definition" and not _is_figure(value)
    )
    return FigureGroup(
        title=title.replace("_", " "),
        definition=content.get("definition"),
        test=test if isinstance(test := content.get("test"), str) else None,
        note="; ".join(notes) or None,
        simulation_only=marked,
        figures=tuple(_figures(content, "", marked=marked)),
    )


def _figures(content: Mapping[str, Any], above: str, *, marked: bool) -> Iterator[Figure]:
    """Yield the figures of a group, with those of nested groups."""
    for key, value in content.items():
        if key in _ABOUT:
            continue
        name = above + str(key).replace("_", " ")
        if _is_figure(value):
            figure = _as_figure(name, value)
            yield replace(figure, simulation_only=marked or figure.simulation_only)
        elif isinstance(value, Mapping):
            yield from _figures(value, f"{name}: ", marked=marked or bool(value.get("simulation_only")))


def _as_figure(name: str, value: object) -> Figure:
    """Return a figure of this name from a `Figure`, from its JSON, or from a plain number or infinity."""
    if isinstance(value, Figure):
        return replace(value, name=name)
    return Figure.from_json({**(value if isinstance(value, Mapping) else {"value": value}), "name": name})


def _is_figure(value: object) -> bool:
    if isinstance(value, Mapping):
        return "value" in value or "reason" in value
    return isinstance(value, Figure) or value in ("inf", "-inf") or is_number(value)


def _is_group(value: object) -> bool:
    return isinstance(value, Mapping) and not _is_figure(value)


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
