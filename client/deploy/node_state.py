"""The state of this hospital's connection to the coordinator, as its SuperNode last noted it.

SuperNode notes each change of its connection (`client/flower/noted_connection.py`), so the state does not depend on the
wording of Flower's log. The note counts only while the process that wrote it runs (`common/system/processes.py`). The
log gives the reason why a node is not connected; it does not say whether a wrong clock led to a refusal.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from client.deploy.settings import HospitalSettings
from common.system.files import content_of
from common.system.log_lines import COLOUR, printable_line, utc

CONNECTED_BEFORE = "the coordinator still counts the connection from before, which ends within a minute"
STILL_COUNTED = f"{CONNECTED_BEFORE}, or it does not know this hospital's key"
"""What Flower's code for a node that cannot be activated means."""
_ACTIVATION_FAILED = "[code: 2004]"
_TELLING = ("Failed", "ERROR", "[code:", "[SSL:", "Connection attempt failed", "Giving up", "refused", "terminated")
"""Parts of the lines in SuperNode's log that say why it is not connected."""
_LEVEL = re.compile(r"^[A-Z]+ *: +")
_PROXY = re.compile(r"[45]\d\d \w")
"""Start of a log line in which SuperNode states why a proxy refuses."""


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


def node_state(settings: HospitalSettings, children: Mapping[str, Mapping[str, Any]]) -> NodeState:
    """Return the state of the connection, given the hospital's processes (`processes.child_states`).

    Raises:
        OSError: A log cannot be read.
    """
    logs = [settings.folder / "logs" / name for name in ("supernode.log.1", "supernode.log")]
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
