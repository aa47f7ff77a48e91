"""One process that hosts all simulated parties behind a Unix socket, as each hospital would host its own.

python -m simulations.host RUN_FOLDER SOCKET
"""

import logging
import signal
import sys
from pathlib import Path

from client.service import serve
from server.app import load
from simulations.federation import parties


def main() -> None:
    """Serve until told to stop; prints one line when ready."""
    folder, socket = Path(sys.argv[1]), sys.argv[2]
    logging.basicConfig(filename=folder / "parties.log", level=logging.INFO)
    server = serve(parties(load(folder), folder), f"unix:{socket}")
    for stop in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stop, lambda *_: server.stop(grace=1))
    print("ready", flush=True)  # noqa: T201 the parent waits for this line
    server.wait_for_termination()


if __name__ == "__main__":
    main()
