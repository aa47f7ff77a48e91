"""Flower's SuperNode as a process that ends when SuperNode gives up, and that waits less during a run.

    [https_proxy=URL] python -m client.flower.supernode FOLDER ARGUMENTS OF flower-supernode

SuperNode gives up its connection permanently at any error of TLS, such as a handshake that a cut network interrupts,
and stops its heartbeats at any status that it does not expect. The thread of its local API then keeps the process
alive, so the node stays offline forever while `caucus-party start` takes it for running. Here the process ends instead,
and is started again. FOLDER is the relay's folder, which contains the certificate of the local API, the login of a
proxy and SuperNode's note of its connection (`noted_connection.py`).

SuperNode asks the coordinator for a message every three seconds, for missing parts of one every second, and looks for
the relay's reply every half second. A query takes several exchanges, each as slow as the slowest hospital, so such
waits took most of a run's time. Here they are shorter during a run (`pace.py`). SuperNode also transfers at most two
parts of a message at a time, or one on a machine with one core. Even a small message has three (`common/parcels.py`),
so here three are transferred at a time, which saves a round trip.
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import httpx
from flwr.app import Message
from flwr.common.constant import SubStatus
from flwr.supercore.inflatable import inflatable_utils
from flwr.supernode import start_client_internal
from flwr.supernode.cli import flower_supernode
from flwr.supernode.fleet_http_client import FleetHttpClient

from client.flower import proxy
from client.flower.loopback import make_certificate
from client.flower.noted_connection import NotedConnection
from client.flower.pace import Pace

IDLE_SECONDS = 3.0
"""Flower's wait, in seconds, after a poll that returned no message."""
BUSY_SECONDS, REPLY_SECONDS = 0.1, 0.05
"""Shortest wait for a message, and wait for a reply or for a message's parts, in seconds."""
PARTS = 3
"""Number of parts of a message that are transferred at a time, each over a separate connection."""
SHARE = 0.2
"""Wait during a run, as a fraction of the time since the last message. A poll costs the coordinator 5 to 10 ms."""

Received = tuple[Message, Any]
"""A message, and the object tree of its parts."""


class Waits:
    """SuperNode's waits, which replace the `time` module in Flower's loop over messages."""

    def __init__(self) -> None:
        self._pace = Pace(BUSY_SECONDS, IDLE_SECONDS, SHARE)

    def came(self) -> None:
        """Record that a message has come or is being answered, so that the next waits are short."""
        self._pace.came()

    def seconds(self, flowers: float) -> float:
        """Return the wait that replaces Flower's: three seconds after a poll without a message, or less for a reply."""
        if flowers < IDLE_SECONDS:
            self.came()
            return min(flowers, REPLY_SECONDS)
        return self._pace.seconds()

    def sleep(self, flowers: float) -> None:
        """Wait for the time that `seconds` returns."""
        time.sleep(self.seconds(flowers))


def main() -> NoReturn:
    """Run until a signal to stop is received, or until SuperNode gives up."""
    shorten_waits()
    forget_ended_runs()
    threading.excepthook = _ended_with
    try:
        folder = Path(sys.argv.pop(1))
        make_certificate(folder)
        note_calls(NotedConnection(folder))
        with proxy.use_proxy(os.environ.get(proxy.VARIABLE), folder):
            flower_supernode()
    except Exception:  # noqa: BLE001 shown, and then the process ends as it does without one
        sys.excepthook(*sys.exc_info())
    os._exit(1)  # not sys.exit, which would wait for the other threads


def shorten_waits() -> None:
    """Shorten the waits in Flower's loop in this process."""
    waits = Waits()

    def pulled(*arguments: Any, **named: Any) -> dict[str, bytes]:
        # Where the answer is there before the message is confirmed, as over a slow line, nobody waits for a reply.
        waits.came()
        return inflatable_utils.pull_objects(*arguments, initial_backoff=REPLY_SECONDS, **named)

    start_client_internal.time = waits  # type: ignore[assignment, attr-defined]
    start_client_internal.pull_objects = pulled  # type: ignore[attr-defined]
    inflatable_utils.get_num_workers = lambda _: PARTS  # type: ignore[assignment]


def forget_ended_runs() -> None:
    """Let SuperNode drop a message whose run ends while the message is in transit, for example when a network fails.

    Flower keeps the message and its task, so the relay may still answer it. SuperNode would take that reply for the one
    to the next run's first message, and be one reply behind from then on.
    """
    pull = start_client_internal._pull_and_store_message  # noqa: SLF001

    def pulled(*, receive: Callable[[], Received | None], **given: Any) -> int | None:
        received = None

        def noted() -> Received | None:
            nonlocal received
            received = receive()
            return received

        run: int | None = pull(receive=noted, **given)
        if run is None and received:
            message, state = received[0], given["state"]
            for task in state.get_tasks(run_ids=[message.metadata.run_id]):
                state.finish_task(task.task_id, SubStatus.FAILED, "the run ended while its message was fetched")
            state.delete_messages()  # this one, and a reply to it: no other is there between two messages
            given["object_store"].delete(message.metadata.message_id)
        return run

    start_client_internal._pull_and_store_message = pulled  # type: ignore[assignment]  # noqa: SLF001


def note_calls(connection: NotedConnection) -> None:
    """Let each call of this process to the coordinator note whether it was answered.

    A refusal of one call, such as one about a run that has ended, does not change the state. The connection is lost if
    there is no answer, if SuperLink does not answer the front door (5xx), or if the node is not let in any more (401).
    """
    call: Callable[..., Any] = FleetHttpClient._unary_unary  # noqa: SLF001

    def noted(client: FleetHttpClient, **given: object) -> object:
        try:
            answer = call(client, **given)
        except httpx.HTTPError as error:
            refused = error.response.status_code if isinstance(error, httpx.HTTPStatusError) else None
            if refused is None or refused == httpx.codes.UNAUTHORIZED or httpx.codes.is_server_error(refused):
                connection.note(connected=False)
            raise
        connection.note(connected=True)
        return answer

    FleetHttpClient._unary_unary = noted  # type: ignore[method-assign, assignment]  # noqa: SLF001


def _ended_with(thread: threading.ExceptHookArgs) -> None:
    threading.__excepthook__(thread)
    os._exit(1)


if __name__ == "__main__":
    main()
