"""Figures of a run for TensorBoard, while it runs: numbers only, never a text.

Figures that a simulation computes from private records are left out, because event files are made to be shared.
"""

import importlib.util
from pathlib import Path

from common.errors import ConfigError
from server.documents.figure_groups import shareable
from server.documents.metrics import Metrics
from server.documents.rounds import RoundReport

FOLDER = "tensorboard"
"""Folder of the event files, in the run folder."""


def check(kind: str | None) -> None:
    """Check before a run starts that figures can be tracked.

    Raises:
        ConfigError: TensorBoard is not installed.
    """
    if kind is not None and importlib.util.find_spec(kind) is None:
        raise ConfigError(
            "tracking",
            expected="TensorBoard to be installed",
            got="none",
            do="Install it, pip install 'caucus[tracking]', or set tracking=null",
        )


def track(kind: str | None, run: Path, step: int, document: RoundReport | Metrics) -> None:
    """Add figures to a run folder's event files.

    Args:
        kind: "tensorboard", or None, which does nothing.
        run: The run folder.
        step: Number of the step; figures that earlier attempts left for it and for later steps are replaced.
        document: The document whose numbers are added; nested names are joined by slashes.
    """
    if kind is None:
        return
    from torch.utils.tensorboard import SummaryWriter

    # One file for each step, so that a killed run leaves whole files.
    with SummaryWriter(run / FOLDER, purge_step=step) as writer:
        for name, value in shareable(document.to_json()):
            writer.add_scalar(name, value, step)
