"""SuperNode's own note of its connection: whether its last call to the coordinator was answered, and since when.

The calls themselves write the note (`supernode.py`), and it counts only while the process that wrote it runs
(`common/system/processes.py`). SuperNode's log cannot serve for this: after a retry it ends with a line on one call,
however long the connection has stood since, and a node that polls without trouble writes nothing. The log gives the
reason why a node is not connected; it does not say whether a wrong clock led to a refusal.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from common.system.files import PUBLIC, content_of, write_atomic
from common.system.log_lines import COLOUR, now, printable_line, utc

NOTE = "connection.json"
"""File in the relay's folder with the note: the process, whether it is connected, and since when."""
REACHED = "supernode.reached"
"""File in the relay's folder that is made once the coordinator has answered a call of this process."""
CONNECTED_BEFORE = "the coordinator still counts the connection from before, which ends within a minute"
STILL_COUNTED = f"{CONNECTED_BEFORE}, or it does not know this hospital's key"
"""What Flower's code for a node that cannot be activated means."""
_ACTIVATION_FAILED = "[code: 2004]"
_TELLING = ("Failed", "ERROR", "[code:", "[SSL:", "Connection attempt failed", "Giving up", "refused", "terminated")
"""Parts of the lines in SuperNode's log that say why it is not connected."""
_LEVEL = re.compile(r"^[A-Z]+ *: +")
_PROXY = re.compile(r"[45]\d\d \w")
"""Start of a log line in which SuperNode states why a proxy refuses."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """The state of a node's connection.

    Attributes:
        connected: Whether the node's last call to the coordinator was answered.
        since: Time at which `connected` last changed, ISO 8601 in UTC; empty if it is not known.
        reason: Why the node is not connected; empty if it is.
        runs: Whether SuperNode runs or is about to start again.
    """

    connected: bool = False
    since: str = ""
    reason: str = ""
    runs: bool = True

    def __str__(self) -> str:
        """Return the state in plain words."""
        since = f" since {utc(self.since)} UTC" if self.since else ""
        if self.connected:
            return f"connected{since}"
        if not self.runs:
            return "not running" + (f"; its log ends with: {self.reason}" if self.reason else "")
        return f"not connected{since}: {self.reason or 'starting'}; if it stays so, caucus-party check says why"


def node_state(folder: Path, children: Mapping[str, Mapping[str, Any]]) -> NodeState:
    """Return the state of a hospital's connection, given its folder and its processes (`processes.child_states`).

    Raises:
        OSError: A log cannot be read.
    """
    logs = [folder / "logs" / name for name in ("supernode.log.1", "supernode.log")]
    lines = [line for log in logs if log.exists() for line in content_of(log).decode(errors="replace").splitlines()]
    reason = reason_in(lines)
    if "supernode" not in children:
        return NodeState(reason=reason, runs=False)
    noted = children["supernode"].get("noted", {})
    connected, since = noted.get("connected") is True, printable_line(str(noted.get("since", "")))
    return NodeState(connected=connected, since=since, reason="" if connected else reason)


def reason_in(lines: Sequence[str]) -> str:
    """Return what SuperNode's log last said of a failure, in one printable line; empty if it said nothing."""
    telling = [
        COLOUR.sub("", line).strip()
        for line in lines
        if (any(part in line for part in _TELLING) and "Traceback" not in line) or _PROXY.match(line)
    ]
    last = _LEVEL.sub("", telling[-1]).rstrip(".") if telling else ""
    return STILL_COUNTED if last.startswith(_ACTIVATION_FAILED) else printable_line(last)
