"""Flower's SuperNode, as a process that ends when it has given up, and is quick while a run is on.

    python -m client.deploy.supernode FOLDER ARGUMENTS OF flower-supernode

SuperNode gives up its connection for good at any error of TLS, such as one spoiled record or a handshake that a cut
network interrupts, and its heartbeats at a status that it does not expect. The thread of its local API then keeps the
process alive: a node that is offline for ever, and that `caucus-party start` takes for a living one. Here that process
ends, and so is started again. FOLDER is the relay's, where the certificate of the local API is.

SuperNode asks the coordinator for a message every three seconds, and for its reply here every half second. With several
exchanges for a query, and the slowest hospital deciding, that was most of a run's time. For a minute after each message
it asks more often (`Pace`); a node without a run leaves the coordinator in peace, as before.
"""

import os
import sys
import threading
import time
from pathlib import Path
from typing import NoReturn

from flwr.supernode import start_client_internal
from flwr.supernode.cli.flower_supernode import flower_supernode

from client.deploy.loopback import make_certificate

IDLE_SECONDS = 3.0
"""Flower's wait where there was no message."""
BUSY_SECONDS, REPLY_SECONDS = 0.25, 0.05
STAYS_BUSY_SECONDS = 60.0


class Pace:
    """SuperNode's waits, in place of the module `time` in Flower's loop of one message after the other.

    Attributes:
        busy_until: Until when it asks more often, in seconds of the monotonic clock.
    """

    def __init__(self) -> None:
        self.busy_until = 0.0

    def seconds(self, flowers: float, now: float) -> float:
        """The wait in place of Flower's: shorter for a reply, and for the next message of a run.

        Args:
            flowers: Flower's wait in seconds: three without a message, less for the reply to one.
            now: Seconds of the monotonic clock.
        """
        if flowers < IDLE_SECONDS:
            self.busy_until = now + STAYS_BUSY_SECONDS
            return min(flowers, REPLY_SECONDS)
        return BUSY_SECONDS if now < self.busy_until else flowers

    def sleep(self, flowers: float) -> None:
        """Wait, as `time.sleep` would, for as long as `seconds` says."""
        time.sleep(self.seconds(flowers, time.monotonic()))


def main() -> NoReturn:
    """Run until a signal to stop, or until SuperNode gives up."""
    start_client_internal.time = Pace()  # type: ignore[assignment, attr-defined]
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
