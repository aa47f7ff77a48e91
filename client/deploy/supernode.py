"""Flower's SuperNode, as a process that ends when it has given up.

    python -m client.deploy.supernode FOLDER ARGUMENTS OF flower-supernode

SuperNode gives up its connection for good at any error of TLS, such as one spoiled record or a handshake that a cut
network interrupts, and its heartbeats at a status that it does not expect. The thread of its local API then keeps the
process alive: a node that is offline for ever, and that `caucus-party start` takes for a living one. Here that process
ends, and so is started again. FOLDER is the relay's, where the certificate of the local API is.
"""

import os
import sys
import threading
from pathlib import Path
from typing import NoReturn

from flwr.supernode.cli.flower_supernode import flower_supernode

from client.deploy.loopback import make_certificate


def main() -> NoReturn:
    """Run until a signal to stop, or until SuperNode gives up."""
    threading.excepthook = _ended_with
    try:
        make_certificate(Path(sys.argv.pop(1)))
        flower_supernode()
    except Exception:  # noqa: BLE001 shown, and then the process ends as it does without one
        sys.excepthook(*sys.exc_info())
    os._exit(1)  # not sys.exit, which would wait for the other threads


def _ended_with(thread: threading.ExceptHookArgs) -> None:
    threading.__excepthook__(thread)
    os._exit(1)


if __name__ == "__main__":
    main()
