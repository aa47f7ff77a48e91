"""Health check for the container that runs one half of a hospital.

    python -m client.deploy.health FOLDER HALF

HALF is `service` or `relay`. The exit code is 0 if all processes of that half are running and, for HALF `service`, the
party service answers on its socket. Otherwise the exit code is 1, and the reason is printed in one line. The check does
not test whether the coordinator can be reached, as restarting a container would not help. This module loads neither
torch nor any code that reads records.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from client.channel import SOCKET, answers
from common.system.processes import status

PATIENCE = 5.0
"""Seconds within which the service must respond."""


def fault(folder: Path, half: str) -> str | None:
    """Return what is wrong with one half of a hospital, "service" or "relay"; None if nothing is."""
    supervisor = status(folder, half)
    if supervisor is None:
        return f"{half} is not started"
    waiting = [name for name, child in supervisor["children"].items() if not child["process"]]
    if waiting:
        return f"{waiting[0]} has ended and waits to start again"
    if half == "service":
        os.chdir(folder)
        if not answers(SOCKET, PATIENCE):
            return f"the party service does not answer within {PATIENCE:g} s"
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the health check; return the exit code."""
    folder, half = sys.argv[1:] if arguments is None else arguments
    problem = fault(Path(folder), half)
    print(problem or "works")  # the engine keeps it
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
