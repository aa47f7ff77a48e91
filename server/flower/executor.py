"""The executor: starts the ServerApp of each run as a process of Flower's own command.

    python -m server.flower.executor SUPERLINK AUTHORITY SECRET_FILE

It replaces Flower's `flower-superexec`, which starts every type of task and passes a task's token to its process as an
argument. Every user of the machine can read arguments, and anyone with the token can act as that ServerApp. Here only
ServerApps are started, and the token is in an unnamed file that only the started process can read.
"""

import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import httpx
from flwr.proto.runtime_pb2 import AcquireTaskRequest
from flwr.supercore.constant import TaskType
from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor, SuperExecAuthHttpInterceptor
from flwr.supercore.runtime import RuntimeHttpClient

from common.system.log_lines import begin_log
from common.system.processes import ends_with, program

log = logging.getLogger("caucus.executor")

POLL_SECONDS = 1.0
_ACQUIRE = "/flwr.proto.Runtime/AcquireTask"


def serve_apps(superlink: str, authority: Path, secret: bytes) -> None:
    """Start a process for every ServerApp that waits for one, until this process is stopped.

    The authority has signed the certificate of SuperLink, which authenticates this process by the shared secret.
    """
    client = RuntimeHttpClient.from_server_address(
        server_address=superlink,
        insecure=False,
        root_certificates=authority.read_bytes(),
        interceptors=[
            RuntimeVersionHttpInterceptor(component_name="SuperExec"),
            SuperExecAuthHttpInterceptor(master_secret=secret, protected_methods={_ACQUIRE}),
        ],
    )
    started: list[subprocess.Popen[bytes]] = []
    away = False
    while True:
        started = [process for process in started if process.poll() is None]  # the kernel forgets those that ended
        try:
            token = client.AcquireTask(AcquireTaskRequest(supported_task_types=[TaskType.SERVER_APP])).token
            away = False
        except httpx.HTTPError as error:
            if not away:
                log.warning("no SuperLink at %s: %s", superlink, type(error).__name__)
            token, away = "", True
        if token:
            started.append(start(token, superlink, authority))
            log.info("a run's process is started: %d", started[-1].pid)
        time.sleep(POLL_SECONDS)


def start(token: str, superlink: str, authority: Path) -> "subprocess.Popen[bytes]":
    """Start the ServerApp to which this token belongs, and return its process, which ends when the executor ends."""
    file = os.memfd_create("token")
    try:
        os.write(file, token.encode())
        return subprocess.Popen(
            [
                *(program("flwr-serverapp"), "--runtime-api-address", superlink, "--root-certificates", str(authority)),
                *("--token-file", f"/proc/self/fd/{file}"),
            ],
            pass_fds=[file],
            # Flower's own --parent-pid sends a signal that waits until a thread has stopped fetching a reply.
            preexec_fn=ends_with(os.getpid()),  # noqa: PLW1509 one thread, and prctl alone
        )
    finally:
        os.close(file)


def main() -> None:
    """Serve until a signal to stop arrives."""
    begin_log()
    superlink, authority, secret = sys.argv[1:]
    serve_apps(superlink, Path(authority), Path(secret).read_bytes())


if __name__ == "__main__":
    main()
