"""A step plot drawn without a script: the sum is constant between charges, and a line above shows the limit.

Coordinates are in user units of an SVG view box, with y pointing down.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 708, 16, 262
_TICKS = 5
_ABOVE = 1.08
"""Upper end of the y axis, relative to the largest value that is drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPlot:
    """A drawing of a sum over time.

    Attributes:
        path: The steps, as data of an SVG path.
        marks: Position (x, y) of each step, and the number of its run in the table, from 1.
        limit: y coordinate of the limit; None if there is no limit.
        y_ticks: y and text of each tick.
        x_ticks: x, text and anchor of the first and the last time.
    """

    path: str
    marks: tuple[tuple[float, float, int], ...]
    limit: float | None
    y_ticks: tuple[tuple[float, str], ...]
    x_ticks: tuple[tuple[float, str, str], ...]


def step_plot(steps: Sequence[tuple[str, int, float]], limit: float | None) -> StepPlot | None:
    """Return the layout of a plot.

    Args:
        steps: Time (ISO 8601), number of the run, and the sum from that time on, in chronological order.
        limit: The limit of the sum, if there is one.

    Returns:
        The plot; None if there is nothing to draw, or a sum is infinite.
    """
    if not steps or not all(math.isfinite(total) for _, _, total in steps):
        return None
    times = [datetime.fromisoformat(when).timestamp() for when, _, _ in steps]
    first, last = times[0], max(times[-1], times[0] + 1)
    top = _ABOVE * max(steps[-1][2], limit or 0)

    def x(time: float) -> float:
        # The first step is not on the axis, where it could not be seen.
        return round(LEFT + (RIGHT - LEFT) * (0.04 + 0.92 * (time - first) / (last - first)), 1)

    def y(value: float) -> float:
        return round(BOTTOM - (BOTTOM - TOP) * value / top, 1)

    pieces = [f"M{LEFT} {y(0)}"]
    for time, (_, _, total) in zip(times, steps, strict=True):
        pieces.append(f"H{x(time)}V{y(total)}")
    pieces.append(f"H{RIGHT}")
    tick = _tick(top)
    return StepPlot(
        path="".join(pieces),
        marks=tuple((x(time), y(total), run) for time, (_, run, total) in zip(times, steps, strict=True)),
        limit=None if limit is None else y(limit),
        y_ticks=tuple((y(number * tick), f"{number * tick:g}") for number in range(int(top / tick) + 1)),
        x_ticks=((x(first), _day(first), "start"), (x(last), _day(last), "end"))
        if _day(first) != _day(last)
        else ((x(first), _day(first), "start"),),
    )


def _tick(top: float) -> float:
    """Return the distance between ticks: 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(top / _TICKS))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= top / _TICKS)


def _day(time: float) -> str:
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d}"
