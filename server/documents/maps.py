"""`map.json` and `map_private.json`: two coordinates for each text, on axes computed only from the synthetic texts."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from server.documents.codec import ABSENT
from server.documents.files import Document

Point = tuple[float, ...]
"""Two finite coordinates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextMap(Document):
    """The `map.json` document. If the texts' embeddings span no plane, the map has neither axes nor points.

    Attributes:
        explained: Fraction of the embeddings' variance along each axis.
        mean: (dimensions,) the origin of the plane.
        axes: (2, dimensions) unit norm.
        points: A point for each line of `synthetic.jsonl`.
    """

    FILE: ClassVar[str] = "map.json"

    explained: tuple[float, ...] | None = field(default=None, metadata=ABSENT)
    mean: tuple[float, ...] | None = field(default=None, metadata=ABSENT)
    axes: tuple[tuple[float, ...], ...] | None = field(default=None, metadata=ABSENT)
    points: tuple[Point, ...] = ()

    def __post_init__(self) -> None:
        _check(self.points)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateMap(Document):
    """The `map_private.json` document, which only a simulation writes.

    Attributes:
        simulation_only: True, because the points represent private records.
        points: Points of private records, keyed by label.
    """

    FILE: ClassVar[str] = "map_private.json"

    simulation_only: bool = True
    points: Mapping[str, tuple[Point, ...]]

    def __post_init__(self) -> None:
        for points in self.points.values():
            _check(points)


def _check(points: tuple[Point, ...]) -> None:
    """Raise a ValueError if a point cannot be drawn."""
    if not all(len(point) == 2 and all(map(math.isfinite, point)) for point in points):
        raise ValueError("a point is not two finite numbers")
