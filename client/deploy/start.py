"""`caucus-party start` and `stop`: the processes of a hospital, kept running.

    service      records, keys, ledger; no network; listens on a Unix socket          client/deploy/host.py
    supernode    Flower's; the only one with a network, outbound alone                client/deploy/supernode.py
    relay        from SuperNode to the socket; runs no pushed code                    client/deploy/relay.py
    metrics      where `metrics_port` is set; on loopback, for this hospital alone    client/deploy/metrics.py

SuperNode and relay get the node's key and nothing else: started by root with `relay_user`, they run as that account,
and the service's files are closed to it. A unit or container for each half: `--only service`, `--only relay`.
"""

import argparse
import logging
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from client.app import SOCKET as SOCKET_NAME
from client.deploy.settings import SOCKET, HospitalSettings
from common.system import processes
from common.system.commands import add_command
from common.system.files import check_records, check_secret
from common.system.processes import Child

SIDES = ("both", "service", "relay")


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `start` and `stop`."""
    start = add_command(
        commands,
        "start",
        _start,
        summary="run party service, SuperNode and relay until told to stop",
        description="Run the hospital's three processes, restart what ends, and end them on SIGTERM or Ctrl-C.",
        example="caucus-party start hospital",
    )
    start.add_argument("--only", choices=SIDES, default="both", help="one half, for a unit or container of its own")
    stop = add_command(
        commands,
        "stop",
        _stop,
        summary="end what start has started",
        description="End the hospital's processes. A run that is under way counts this hospital as dropped out.",
        example="caucus-party stop hospital",
    )
    for parser in (start, stop):
        parser.add_argument("folder", metavar="FOLDER", type=Path, help="made by caucus-party init")


def _start(chosen: argparse.Namespace) -> Iterator[str]:
    settings = HospitalSettings.load(chosen.folder)
    children = []
    if chosen.only in {"both", "service"}:
        check_records(settings.records)
        settings.number(settings.roster())
        command = (sys.executable, "-m", "client.deploy.host", str(settings.folder))
        environment = processes.environment(settings.private)
        children.append(Child(name="service", command=command, environment=environment))
        if settings.metrics_port is not None:
            metrics = (sys.executable, "-m", "client.deploy.metrics", str(settings.folder))
            children.append(Child(name="metrics", command=metrics, environment=environment))
    if chosen.only in {"both", "relay"}:
        if settings.relay_user is None and os.geteuid() == 0:
            yield "started as root without relay_user: nothing but the relay's own code keeps it from the records"
        for secret in ("node.key", "superexec.secret"):
            check_secret(settings.node / secret)
        children += _relay(settings, _free_port())
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stdout)
    yield f"{settings.name}: logs are in {settings.folder / 'logs'}; stop with caucus-party stop {chosen.folder}"
    processes.supervise(children, folder=settings.folder, role=chosen.only)


def _relay(settings: HospitalSettings, port: int) -> list[Child]:
    environment = processes.environment(settings.node)
    node = ("--root-certificates", "node/ca.crt", "--auth-supernode-private-key", "node/node.key")
    secret = "node/superexec.secret"  # noqa: S105 a path
    supernode = Child(
        name="supernode",
        command=(
            *(sys.executable, "-m", "client.deploy.supernode", "--superlink", settings.coordinator, *node),
            *("--isolation", "process", "--superexec-auth-secret-file", secret, "--port", str(port)),
        ),
        environment=environment,
        user=settings.relay_user,
    )
    relay = Child(
        name="relay",
        command=(sys.executable, "-m", "client.deploy.relay", f"127.0.0.1:{port}", settings.bundle, secret),
        environment=environment | {SOCKET_NAME: SOCKET},
        user=settings.relay_user,
    )
    return [supernode, relay]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _stop(chosen: argparse.Namespace) -> Iterator[str]:
    ended = [processes.stop(chosen.folder.resolve(), role) for role in SIDES]
    yield "stopped" if any(ended) else "nothing was running"
