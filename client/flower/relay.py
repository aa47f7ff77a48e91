"""The relay: it passes messages from this hospital's SuperNode to the party service, and runs no code but our own.

    python -m client.flower.relay SUPERNODE_ADDRESS BUNDLE_HASH SECRET_FILE CERTIFICATE UNTIL_IDLE

Flower's executor would unpack the bundle that the coordinator pushed and run it. This module takes that executor's
place (SuperNode's `--isolation process`): the bundle is compared with the hash in the hospital's own file and never
unpacked, let alone run. The code that runs is `client/app.py` as the hospital installed it. A single long-lived process
also avoids starting a Python process for each message, which takes one to two seconds.

The relay ends once no message has come for UNTIL_IDLE seconds ("inf": never). Idle time is measured here because the
relay only knows events that the coordinator sees as well: when a message came, and when its reply left. So the time at
which it ends reveals nothing about the records.
"""

import logging
import math
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Lock

import httpx
from flwr.app import Context, Error, Message
from flwr.clientapp import ClientApp
from flwr.common.constant import ErrorCode, SubStatus
from flwr.proto.message_pb2 import PullObjectRequest, PullObjectResponse
from flwr.proto.runtime_pb2 import AcquireTaskRequest, SendTaskHeartbeatRequest
from flwr.supercore.constant import TaskType
from flwr.supercore.heartbeat import HeartbeatSender
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError, ObjectPushError
from flwr.supercore.interceptors import (
    RuntimeTokenHttpInterceptor,
    RuntimeVersionHttpInterceptor,
    SuperExecAuthHttpInterceptor,
)
from flwr.supercore.retry import RetryInvoker, exponential
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output

from client.app import app
from client.flower.pace import Pace
from common.parcels import HANDLER_RAISED
from common.system.log_lines import begin_log

log = logging.getLogger("caucus.relay")

POLL_SECONDS, BUSY_SECONDS, SHARE = 1.0, 0.05, 0.1
"""Longest and shortest wait between two polls of SuperNode, in seconds, and the wait as a fraction of the time since
the last message. Each poll costs this machine 4 to 5 ms of processor time."""
TRIES = 4
"""Number of times that a call for a message is tried, with waits of up to 1, 2 and 4 seconds. SuperNode's local API
closes a connection after five idle seconds, possibly just when an answer is ready. The call is then lost, and SuperNode
would wait forever for the rest of the answer."""
LOST = (httpx.ConnectError, httpx.WriteError, httpx.RemoteProtocolError)
"""Errors after which a call can be repeated, since SuperNode has not handled it; a late reply raises another error."""
_ACQUIRE = "/flwr.proto.Runtime/AcquireTask"


def serve_messages(
    address: str,
    bundle: str,
    secret: bytes,
    certificate: bytes,
    *,
    until_idle: float = math.inf,
) -> None:
    """Answer every message of this SuperNode, one after another, until it is stopped or idle.

    Args:
        address: host:port of the SuperNode's Runtime API, on this machine.
        bundle: SHA-256 of the only bundle whose messages are passed on, hexadecimal.
        secret: Shared secret by which the SuperNode authenticates this process.
        certificate: Certificate by which this process authenticates the SuperNode.
        until_idle: Seconds without a message after which this function returns, counted from the start, and again from
            the end of each answer. A message that has arrived completely is answered, however long that takes.
    """
    executor = SuperExecAuthHttpInterceptor(master_secret=secret, protected_methods={_ACQUIRE})
    client = _client(address, certificate, executor)

    def acquire() -> str:
        return str(client.AcquireTask(AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP])).token)

    away, following, pace, busy = False, "", Pace(BUSY_SECONDS, POLL_SECONDS, SHARE), time.monotonic()
    while time.monotonic() - busy < until_idle:
        try:
            token, following = following or acquire(), ""
            if token:
                task = _client(address, certificate, RuntimeTokenHttpInterceptor(token), tries=TRIES)
                try:
                    following = answer(task, bundle, app, acquire, until_idle=until_idle)
                finally:
                    busy = time.monotonic()
                pace.came()
                continue
            away = False
        except (httpx.HTTPError, ObjectPushError) as error:
            # SuperNode is starting, was restarted in between, or ended this run: what was lost is asked again.
            if not away:
                log.warning("no SuperNode at %s: %s", address, type(error).__name__)
            away = True
        time.sleep(pace.seconds())


def answer(
    client: RuntimeHttpClient,
    bundle: str,
    client_app: ClientApp,
    acquire: Callable[[], str],
    *,
    until_idle: float = math.inf,
) -> str:
    """Answer the one message for this client's token; give it up if parts are missing after `until_idle` seconds.

    Returns:
        The token of the next message, if this message was given up for it; otherwise an empty string.
    """
    following: list[str] = []
    pull = _until_let_go(client.PullObject, acquire, following, until_idle)
    client.PullObject = pull  # type: ignore[assignment, method-assign]
    heartbeat = HeartbeatSender(partial(_beats, client))
    heartbeat.start()
    try:
        message, context, _, fab = pull_task_input(client)
        reply = _reply(message, context, fab.hash_str, bundle, client_app)
        push_message(client, reply, context)
        push_task_output(client, context, SubStatus.COMPLETED, "")
    except ObjectPullError:
        log.warning("a message whose parts do not come is given up; the coordinator asks again")
        # Said, and not left to lapse: Flower would write its own reply, and from then on be one reply behind.
        push_task_output(client, None, SubStatus.FAILED, "")
    finally:
        heartbeat.stop()
        client.close()
    return following[0] if following else ""


def _beats(client: RuntimeHttpClient) -> bool:
    """Tell SuperNode that its message is being answered; return whether it replied. If not, the caller tries again.

    Flower's own function would end this process if SuperNode has given the message up, but the reply is refused anyway.
    """
    try:
        client.SendTaskHeartbeat(SendTaskHeartbeatRequest())
    except httpx.HTTPError:
        return False
    return True


def _until_let_go(
    pull: Callable[[PullObjectRequest], PullObjectResponse],
    acquire: Callable[[], str],
    following: list[str],
    until_idle: float = math.inf,
) -> Callable[[PullObjectRequest], PullObjectResponse]:
    """Return a function that pulls a message's parts as Flower does, but sooner, and stops once there is a new message.

    SuperNode offers one message at a time, so a new message means that it has given up the previous one, for example
    because the coordinator died before it had sent all parts. Flower's own executor would wait for the rest forever.
    """
    one_at_a_time, pace, began = Lock(), Pace(BUSY_SECONDS, POLL_SECONDS, SHARE), time.monotonic()
    pace.came()

    def pull_or_give_up(request: PullObjectRequest) -> PullObjectResponse:
        while not (part := pull(request)).object_available and part.object_found:
            with one_at_a_time:
                if not following and (token := acquire()):
                    following.append(token)
            if following or time.monotonic() - began > until_idle:
                raise ObjectPullError(request.object_id, "let go")
            time.sleep(pace.seconds())
        return part

    return pull_or_give_up


def _reply(message: Message, context: Context, pushed: str, bundle: str, client_app: ClientApp) -> Message:
    if pushed != bundle:
        log.error(
            "the coordinator pushed bundle %s; this hospital's client.yaml allows %s alone: refused. "
            "Ask the coordinator which version runs there",
            pushed,
            bundle,
        )
        return Message(Error(ErrorCode.INVALID_FAB), reply_to=message)
    try:
        return client_app(message, context)
    except Exception as error:  # noqa: BLE001 its text would travel; a message of another type comes here too
        log.warning("a message that is none of ours: %s", type(error).__name__)
        return Message(Error(HANDLER_RAISED), reply_to=message)


def _client(
    address: str,
    certificate: bytes,
    interceptor: SuperExecAuthHttpInterceptor | RuntimeTokenHttpInterceptor,
    *,
    tries: int = 1,
) -> RuntimeHttpClient:
    return RuntimeHttpClient.from_server_address(
        server_address=address,
        insecure=False,
        root_certificates=certificate,
        interceptors=[RuntimeVersionHttpInterceptor(component_name="flwr-clientapp"), interceptor],
        retry_invoker=RetryInvoker(exponential, LOST, max_tries=tries, max_time=None),
    )


def main() -> None:
    """Serve until a signal to stop is received, or until idle."""
    begin_log()
    address, bundle, secret, certificate, until_idle = sys.argv[1:]
    while not Path(certificate).exists():  # SuperNode makes it when it starts for the first time
        time.sleep(BUSY_SECONDS)
    trust = Path(certificate).read_bytes()
    serve_messages(address, bundle, Path(secret).read_bytes(), trust, until_idle=float(until_idle))


if __name__ == "__main__":
    main()
