"""`caucus-party start` and `stop`: the processes of a hospital, kept running.

    service      records, keys, ledger; no network; listens on a Unix socket          client/deploy/host.py
    supernode    Flower's; the only one with a network, outbound alone                client/flower/supernode.py
    relay        from SuperNode to the socket; runs no pushed code                    client/flower/relay.py
    metrics      where `metrics_port` is set; on loopback, for this hospital alone    client/deploy/metrics.py

SuperNode and relay get the node's key, a proxy's login and nothing else: started by root with `relay_user`, they run as
that account, and the service's files are closed to it. A unit or container for each half: `--only service`,
`--only relay`.
"""

import argparse
import logging
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from client.app import SOCKET as SOCKET_NAME
from client.channel import SOCKET
from client.deploy.settings import HospitalSettings
from client.flower import proxy
from client.flower.loopback import CERTIFICATE, HOST, KEY
from common.errors import ConfigError
from common.models import catalogue
from common.system import locks, processes
from common.system.commands import add_command
from common.system.files import check_records, check_secret
from common.system.processes import Child

SIDES = {"both": ("service", "relay"), "service": ("service",), "relay": ("relay",)}
"""Choices of `--only`, and the halves that each starts: a half has a lock, so that it runs once."""


def register(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `start` and `stop`."""
    start = add_command(
        commands,
        "start",
        _start,
        summary="run party service, SuperNode and relay until told to stop",
        description="Run the hospital's processes, restart what ends, and end them on SIGTERM or Ctrl-C.",
        example="caucus-party start hospital",
    )
    start.add_argument("--only", choices=[*SIDES], default="both", help="one half, for a unit or container of its own")
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
    halves = SIDES[chosen.only]
    with locks.hold(settings.folder, halves, stop=f"caucus-party stop {chosen.folder}"):
        if "service" in halves:
            check_records(settings.records)
            settings.number(settings.roster())
        if "relay" in halves:
            if settings.relay_user is None and os.geteuid() == 0:
                yield "started as root without relay_user: nothing but the relay's own code keeps it from the records"
            for secret in ("node.key", "superexec.secret"):
                check_secret(settings.node / secret)
            if settings.proxy:
                proxy.login(settings.node)
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stdout)
        yield f"{settings.name}: logs are in {settings.folder / 'logs'}; stop with caucus-party stop {chosen.folder}"
        processes.supervise(children(settings, halves), folder=settings.folder, names=halves)


def children(settings: HospitalSettings, halves: Sequence[str]) -> list[Child]:
    """The processes of these halves of a hospital."""
    service = []
    if "service" in halves:
        command = (sys.executable, "-m", "client.deploy.host", str(settings.folder))
        # Its home is another than ours.
        environment = processes.environment(settings.private, **{catalogue.MODELS: str(catalogue.root())})
        service.append(Child(name="service", command=command, environment=environment))
        if settings.metrics_port is not None:
            metrics = (sys.executable, "-m", "client.deploy.metrics", str(settings.folder))
            service.append(Child(name="metrics", command=metrics, environment=environment))
    return service + (_relay(settings, _free_port()) if "relay" in halves else [])


def _relay(settings: HospitalSettings, port: int) -> list[Child]:
    environment = processes.environment(settings.node)
    node = ("--root-certificates", "node/ca.crt", "--auth-supernode-private-key", "node/node.key")
    secret = "node/superexec.secret"  # noqa: S105 a path
    certificate, key = f"node/{CERTIFICATE}", f"node/{KEY}"
    supernode = Child(
        name="supernode",
        command=(
            *(sys.executable, "-m", "client.flower.supernode", "node", "--superlink", settings.coordinator, *node),
            *("--isolation", "process", "--superexec-auth-secret-file", secret, "--host", HOST, "--port", str(port)),
            *("--ssl-ca-certfile", certificate, "--ssl-certfile", certificate, "--ssl-keyfile", key),
        ),
        environment=environment | ({proxy.VARIABLE: settings.proxy} if settings.proxy else {}),
        user=settings.relay_user,
    )
    relay = Child(
        name="relay",
        command=(sys.executable, "-m", "client.flower.relay", f"{HOST}:{port}", settings.bundle, secret, certificate),
        environment=environment | {SOCKET_NAME: SOCKET},
        user=settings.relay_user,
    )
    return [supernode, relay]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _stop(chosen: argparse.Namespace) -> Iterator[str]:
    if not (chosen.folder / "client.yaml").is_file():  # it need not be valid: what runs must end
        raise ConfigError("party's folder", expected="client.yaml", got="none", where=chosen.folder)
    yield "stopped" if processes.stop(chosen.folder.resolve(), SIDES["both"]) else "nothing was running"
