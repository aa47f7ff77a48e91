"""One process that hosts all simulated parties behind a Unix socket, as each hospital hosts its own party.

python -m simulations.federation.host RUN_FOLDER SOCKET [OVERRIDE ...]

If there are overrides, the process first stores the configuration of the run in the folder. `engine=flower` starts it
automatically; for `flwr run`, start it by hand (server/flower/README.md).
"""

import logging
import signal
import sys
from pathlib import Path

from client.channel import serve_socket
from server.prepare.compose import check_simulation, compose_settings, load_settings, store
from simulations.federation.parties import parties, prepare_settings


def main() -> None:
    """Serve the parties until SIGTERM or SIGINT; print the line "ready" when they accept requests."""
    folder, socket, *overrides = Path(sys.argv[1]), *sys.argv[2:]
    if overrides or not (folder / "config.yaml").exists():
        store(prepare_settings(check_simulation(compose_settings(overrides)), folder), folder)
    logging.basicConfig(filename=folder / "parties.log", level=logging.INFO)
    server = serve_socket(parties(check_simulation(load_settings(folder)), folder), f"unix:{socket}")
    for stop in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stop, lambda *_: server.stop(grace=1))
    print("ready", flush=True)  # the parent waits for this line
    server.wait_for_termination()


if __name__ == "__main__":
    main()
