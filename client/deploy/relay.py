"""The relay: takes messages from this hospital's SuperNode and hands them to the party service, by our own code alone.

    python -m client.deploy.relay SUPERNODE_ADDRESS BUNDLE_HASH SECRET_FILE

Flower's executor would unpack the bundle that the coordinator pushed and run it. This takes that executor's place
(SuperNode's `--isolation process`): the bundle is compared with the hash in the hospital's own file and never unpacked,
let alone run; what runs is `client/app.py` as the hospital installed it. One lasting process also saves Flower's start
of a Python for each message, one to two seconds.
"""

import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
from flwr.app import Context, Error, Message
from flwr.clientapp import ClientApp
from flwr.common.constant import ErrorCode, SubStatus
from flwr.proto.message_pb2 import PullObjectRequest, PullObjectResponse
from flwr.proto.runtime_pb2 import AcquireTaskRequest
from flwr.supercore.constant import TaskType
from flwr.supercore.heartbeat import HeartbeatSender, make_task_heartbeat_fn_http
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError
from flwr.supercore.interceptors import (
    RuntimeTokenHttpInterceptor,
    RuntimeVersionHttpInterceptor,
    SuperExecAuthHttpInterceptor,
)
from flwr.supercore.protobuf.client import ProtobufClientInterceptor
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output

from client.app import app

log = logging.getLogger("caucus.relay")

POLL_SECONDS = 0.25
PART_SECONDS = 60.0
"""To wait for the next part of a message: a coordinator that died in mid-sentence sends none; Flower waits for ever."""
_ACQUIRE = "/flwr.proto.Runtime/AcquireTask"


def serve(address: str, bundle: str, secret: bytes, client_app: ClientApp = app) -> None:
    """Answer every message of this SuperNode, one after another, for ever.

    Args:
        address: host:port of the SuperNode's Runtime API, on this machine.
        bundle: SHA-256 of the only bundle whose messages are passed on, hexadecimal.
        secret: What the SuperNode knows this process by.
        client_app: The hospital's own.
    """
    client = _client(address, SuperExecAuthHttpInterceptor(master_secret=secret, protected_methods={_ACQUIRE}))
    away = False
    while True:
        try:
            task = client.AcquireTask(AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP]))
            if task.token:
                answer(_client(address, RuntimeTokenHttpInterceptor(task.token)), bundle, client_app)
                continue
            away = False
        except httpx.HTTPError as error:
            # SuperNode is starting, was restarted in between, or ended this run: what was lost is asked again.
            if not away:
                log.warning("no SuperNode at %s: %s", address, type(error).__name__)
            away = True
        except (TimeoutError, ObjectPullError):
            log.warning("a message of which no more came is given up; the coordinator asks again")
        time.sleep(POLL_SECONDS)


def answer(client: RuntimeHttpClient, bundle: str, client_app: ClientApp) -> None:
    """Answer the one message that this client's token stands for."""
    client.PullObject = _while_parts_come(client.PullObject)  # type: ignore[assignment, method-assign]
    heartbeat = HeartbeatSender(make_task_heartbeat_fn_http(client))
    heartbeat.start()
    try:
        message, context, _, fab = pull_task_input(client)
        reply = _reply(message, context, fab.hash_str, bundle, client_app)
        push_message(client, reply, context)
        push_task_output(client, context, SubStatus.COMPLETED, "")
    finally:
        heartbeat.stop()
        client.close()


def _while_parts_come(
    pull: Callable[[PullObjectRequest], PullObjectResponse],
) -> Callable[[PullObjectRequest], PullObjectResponse]:
    last = time.monotonic()

    def pull_or_give_up(request: PullObjectRequest) -> PullObjectResponse:
        nonlocal last
        part = pull(request)
        if part.object_available:
            last = time.monotonic()
        elif time.monotonic() - last > PART_SECONDS:
            raise TimeoutError
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
        return Message(Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION), reply_to=message)


def _client(address: str, interceptor: ProtobufClientInterceptor) -> RuntimeHttpClient:
    return RuntimeHttpClient.from_server_address(
        server_address=address,
        insecure=True,  # on this machine, and the only secret that passes is the one that it holds
        root_certificates=None,
        interceptors=[RuntimeVersionHttpInterceptor(component_name="flwr-clientapp"), interceptor],
    )


def main() -> int:
    """Serve until told to stop."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    address, bundle, secret = sys.argv[1:]
    serve(address, bundle, Path(secret).read_bytes())
    return 0


if __name__ == "__main__":
    sys.exit(main())
