"""`caucus-coordinator serve` and `stop`: three processes, kept running.

superlink    Flower's, on loopback; remembers nodes and messages in superlink.db
executor     starts the ServerApp of each run; knows SuperLink's secret
front_door   the only public endpoint; see server/deploy/front_door.py
"""

import argparse
import logging
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from common.errors import ConfigError
from common.system import processes
from common.system.commands import add_command
from common.system.files import check_secret
from common.system.processes import Child
from server.deploy.authority import check_certificate, ending_soon
from server.deploy.flower import write_connection
from server.deploy.settings import CoordinatorSettings

PASSED_ON = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")
"""Environment variables for a run's models: only the executor, and through it the ServerApp, gets them."""


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `serve` and `stop`."""
    serve = add_command(
        commands,
        "serve",
        _serve,
        summary="run SuperLink behind the front door until told to stop",
        description="Run the coordinator's three processes, restart them if they end, stop on SIGTERM or Ctrl-C.",
        example="caucus-coordinator serve coordinator",
    )
    stop = add_command(
        commands,
        "stop",
        _stop,
        summary="stop the processes of serve",
        description="Stop the coordinator's processes. A run in progress stops with them and can be resumed.",
        example="caucus-coordinator stop coordinator",
    )
    for parser in (serve, stop):
        parser.add_argument("folder", metavar="FOLDER", type=Path, help="made by caucus-coordinator init")


def _serve(chosen: argparse.Namespace) -> Iterator[str]:
    settings = CoordinatorSettings.load(chosen.folder)
    check_certificate(settings.folder)
    check_secret(settings.folder / "superexec.secret")
    if processes.running(settings.folder) is None:
        for address in ((settings.listen, settings.port), ("127.0.0.1", settings.superlink_port)):
            _free(*address)
    write_connection(settings)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stdout)
    yield from ending_soon(settings.folder)
    yield f"hospitals connect to {settings.address}; logs are in {settings.folder / 'logs'}"
    processes.supervise(_children(settings), folder=settings.folder)


def _children(settings: CoordinatorSettings) -> list[Child]:
    environment = processes.environment(settings.folder)
    secret = "superexec.secret"  # noqa: S105 a path
    superlink = [processes.program("flower-superlink"), "--host", "127.0.0.1", "--port", str(settings.superlink_port)]
    superlink += ["--ssl-ca-certfile", "ca.crt", "--ssl-certfile", "server.crt", "--ssl-keyfile", "server.key"]
    superlink += ["--enable-supernode-auth", "--isolation", "process", "--superexec-auth-secret-file", secret]
    superlink += ["--disable-runtime-dependency-installation", "--database", "superlink.db"]
    executor = [processes.program("flower-superexec"), "--runtime-api-address", settings.superlink]
    executor += ["--root-certificates", "ca.crt", "--superexec-auth-secret-file", secret]
    door = [sys.executable, "-m", "server.deploy.front_door", settings.listen, str(settings.port), settings.superlink]
    door += ["server.crt", "server.key", "ca.crt"]
    return [
        Child(name="superlink", command=superlink, environment=environment),
        Child(name="executor", command=executor, environment=environment | processes.chosen(PASSED_ON)),
        Child(name="front_door", command=door, environment=environment),
    ]


def _free(host: str, port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigError(
                "port", expected="a free one", got=error.strerror, where=f"{host}:{port}", do="Change coordinator.yaml"
            ) from None


def _stop(chosen: argparse.Namespace) -> Iterator[str]:
    yield "stopped" if processes.stop(chosen.folder.resolve()) else "nothing was running"
