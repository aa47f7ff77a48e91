"""Figures of a run for TensorBoard, written during the run: numbers only, never a text.

Figures that a simulation computes from private records are left out, because event files are made to be shared.
"""

import time
from pathlib import Path

from server.documents.metrics import Metrics, shareable
from server.documents.rounds import RoundReport

FOLDER = "tensorboard"
"""Folder of the event files, in the run folder."""


def track(kind: str | None, run: Path, step: int, document: RoundReport | Metrics) -> None:
    """Add figures to a run folder's event files.

    Args:
        kind: "tensorboard", or None, which does nothing.
        run: The run folder.
        step: Index of the step. Figures that earlier attempts wrote for this step and for later steps are replaced.
        document: The document whose numbers are added; nested names are joined by slashes.
    """
    if kind is None:
        return
    from tensorboard.compat.proto.event_pb2 import Event, SessionLog
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    values = [Summary.Value(tag=name, simple_value=value) for name, value in shareable(document.to_json())]
    # One file for each step, so that a killed run leaves whole files; it begins a session, which replaces later steps.
    writer = EventFileWriter(str(run / FOLDER))
    for content in ({"session_log": SessionLog(status=SessionLog.START)}, {"summary": Summary(value=values)}):
        writer.add_event(Event(wall_time=time.time(), step=step, **content))
    writer.close()
