"""Figures of a run for TensorBoard, while it runs: numbers alone, never a text.

What is computed from private records, in a simulation, is not among them: event files are made to be shown around.
"""

import importlib.util
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from common import validate
from common.errors import ConfigError

FOLDER = "tensorboard"
"""Of the event files, in the run folder."""

KINDS = (FOLDER,)


def check(kind: str | None) -> None:
    """See that figures can be tracked, before a run starts.

    Raises:
        ConfigError: Nothing is known by that name, or it is not installed.
    """
    if kind is None:
        return
    validate.one_of("tracking", kind, among=KINDS)
    if importlib.util.find_spec("tensorboard") is None:
        raise ConfigError(
            "tracking", expected="TensorBoard to be installed", got="none",
            do="Install it, pip install 'caucus[tracking]', or set tracking=null",
        )  # fmt: skip


def track(kind: str | None, run: Path, step: int, figures: Mapping[str, Any]) -> None:
    """Add figures to a run folder's event files.

    Args:
        kind: "tensorboard", or None, which does nothing.
        run: The run folder.
        step: Takes the place of what an earlier attempt at this step, or a later one, left there.
        figures: Numbers by name; names of figures within figures are joined by strokes.
    """
    if kind is None:
        return
    from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 — takes seconds, and is wanted seldom

    # A file for each step: whole whenever a run is killed.
    with SummaryWriter(run / FOLDER, purge_step=step) as writer:
        for name, value in scalars(figures):
            writer.add_scalar(name, value, step)


def scalars(figures: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, float]]:
    """All finite numbers in there with their names, but those that only a simulation can have."""
    if figures.get("simulation_only"):
        return
    for name, value in figures.items():
        if isinstance(value, Mapping):
            yield from scalars(value, f"{above}{name}/")
        elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            yield f"{above}{name}", float(value)
