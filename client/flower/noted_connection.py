"""SuperNode's own note of its connection: whether its last call to the coordinator was answered, and since when.

The calls themselves write the note (`supernode.py`). SuperNode's log cannot serve for this: after a retry it ends with
a line on one call, however long the connection has stood since, and a node that polls without trouble writes nothing.
"""

import json
import os
from pathlib import Path
from threading import Lock

from common.system.files import PUBLIC, write_atomic
from common.system.log_lines import now

NOTE = "connection.json"
"""File in the relay's folder with the note: the process, whether it is connected, and since when."""
REACHED = "supernode.reached"
"""File in the relay's folder that is made once the coordinator has answered a call of this process."""


class NotedConnection:
    """The connection of this process, whose changes are written to a file; at first it is not connected.

    Args:
        folder: The relay's folder.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / NOTE
        self._reached = folder / REACHED
        self._lock = Lock()  # heartbeats come from a thread of their own
        self._noted: bool | None = None
        self.note(connected=False)

    def note(self, *, connected: bool) -> None:
        """Write whether the last call was answered, if this has changed.

        On a full disk there is no note until one can be written, since an older one would be wrong.
        """
        with self._lock:
            if connected == self._noted:
                return
            text = json.dumps({"process": os.getpid(), "connected": connected, "since": now()})
            try:
                if connected:
                    self._reached.touch()
                write_atomic(self._path, text.encode(), mode=PUBLIC)
                self._noted = connected
            except OSError:
                self._path.unlink(missing_ok=True)
                self._noted = None
