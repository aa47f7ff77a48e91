"""`caucus-party start` and `stop`: starting a hospital's processes, restarting them if they end, and stopping them.

    service      records, keys, ledger; no network; listens on a Unix socket          client/deploy/host.py
    supernode    Flower's; the only one with a network, outbound only                 client/flower/supernode.py
    relay        from SuperNode to the socket; runs no pushed code                    client/flower/relay.py
    metrics      where `metrics_port` is set; on loopback, for this hospital alone    client/deploy/metrics.py

SuperNode and relay get the node's key, a proxy's login and nothing else. If root starts them and `relay_user` is set,
they run as that account, which cannot read the service's files. `--only service` and `--only relay` start one half, for
separate units or containers.

Without a daemon, as in a nightly job, `--until-idle 30m` answers the waiting messages and ends with code 0: all
processes end once no message of the coordinator has come for 30 minutes, counted from the start and again from each
reply. The relay measures this by events that the coordinator sees as well. If a run continues after that, it counts
this hospital as dropped out. The code is 3 if the coordinator has answered nothing, so that a nightly job does not look
successful, and 1 if one of the processes is not running at the end, or not ready.
"""

import argparse
import logging
import math
import os
import re
import sys
from collections.abc import Iterator, Sequence

from client.approval.entries import awaiting_entries
from client.channel import READY, SOCKET, SOCKET_NAME
from client.deploy import known_records
from client.deploy.settings import SIDES, HospitalSettings, check_folder
from client.flower import proxy
from client.flower.loopback import CERTIFICATE, HOST, KEY
from client.flower.noted_connection import NOTE, REACHED, reason_in
from common.errors import CaucusError, ConfigError, LedgerError, UnreachedError
from common.models import catalogue
from common.system import locks, processes
from common.system.commands import Commands, add_command, add_folder
from common.system.files import check_records, check_secret
from common.system.processes import Child

UNTIL_IDLE = "--until-idle"
_UNITS = {"s": 1, "m": 60, "h": 3600}
"""Seconds per unit of a duration."""


def register(commands: Commands) -> None:
    """Add the `start` and `stop` commands."""
    start = add_command(
        commands,
        "start",
        _start,
        summary="run party service, SuperNode and relay until told to stop, or until idle",
        description="Run the hospital's processes, restart what ends, and end them on SIGTERM or Ctrl-C, or once idle.",
        example="caucus-party start hospital",
    )
    start.add_argument(
        "--only", choices=[*SIDES], default="both", help="only one half, for separate units or containers"
    )
    start.add_argument(
        UNTIL_IDLE,
        metavar="DURATION",
        help="end after this time without a message of the coordinator, such as 30m (s, m or h)",
    )
    stop = add_command(
        commands,
        "stop",
        _stop,
        summary="end the processes that start has started",
        description="End the hospital's processes. A run that is under way counts this hospital as dropped out.",
        example="caucus-party stop hospital",
    )
    for parser in (start, stop):
        add_folder(parser, "caucus-party")


def _start(chosen: argparse.Namespace) -> Iterator[str]:
    settings = HospitalSettings.load(chosen.folder)
    halves = SIDES[chosen.only]
    until_idle = _seconds(chosen.until_idle, halves)
    with locks.hold_locks(settings.folder, halves, stop=f"caucus-party stop {chosen.folder}"):
        if "service" in halves:
            settings.check_limits()
            check_records(settings.records)
            settings.number(settings.roster())
            _check_ledger(settings)
            yield from known_records.settle(settings.folder)
        if "relay" in halves:
            if settings.relay_user is None and os.geteuid() == 0:
                yield "started as root without relay_user: only the relay's own code keeps it from the records"
            for secret in ("node.key", "superexec.secret"):
                check_secret(settings.node / secret)
            settings.authority()  # all certificates in the file would be trusted
            if settings.proxy:
                proxy.login(settings.node)
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stdout)
        yield f"{settings.name}: logs are in {settings.folder / 'logs'}; stop with caucus-party stop {chosen.folder}"
        running = hospital_children(settings, halves, until_idle)
        failed = processes.supervise(running, folder=settings.folder, names=halves)
        if failed == ["supernode"] and not (settings.node / REACHED).exists():
            what = f"the coordinator has not answered this hospital's node within {chosen.until_idle}"
            do = f"Run caucus-party check {chosen.folder}: it finds most causes. Look for others in logs/supernode.log"
            raise UnreachedError(what, where=settings.coordinator, do=do)
        if failed:
            where = ", ".join(str(settings.folder / "logs" / f"{name}.log") for name in failed)
            what = f"the wait for messages ended without the processes {', '.join(failed)}"
            raise CaucusError(what, where=where, do="Read the log, and run caucus-party check")
        if failed is not None:
            plans = (
                f"; plans that await approval: {len(awaiting_entries(settings.private))}" if "service" in halves else ""
            )
            yield f"{settings.name}: ended, as no message of the coordinator came for {chosen.until_idle}{plans}"


def _check_ledger(settings: HospitalSettings) -> None:
    """Raise a ConfigError if the service does not start with its ledger, as it would be started again for ever."""
    try:
        settings.noted_head.opened_at_start(settings.ledger)
    except LedgerError as error:
        raise ConfigError(error.what, expected=error.expected, got=error.got, where=error.where, do=error.do) from error
    if former := known_records.advice_on_former(settings.folder):
        raise ConfigError(
            "ledger", expected="all that was spent of these records", got="less", where=settings.ledger, do=former[0]
        )


def _seconds(until_idle: str | None, halves: Sequence[str]) -> float:
    """Return the duration in seconds; infinite if no duration is given."""
    if until_idle is None:
        return math.inf
    duration = re.fullmatch("([1-9][0-9]{0,5})([smh])", until_idle)
    if not duration:
        raise ConfigError(UNTIL_IDLE, expected="a whole number and s, m or h, such as 30m", got=until_idle)
    if "relay" not in halves:
        raise ConfigError(f"{UNTIL_IDLE} needs the relay, which sees messages come", do="Leave out --only service")
    return float(duration[1]) * _UNITS[duration[2]]


def hospital_children(settings: HospitalSettings, halves: Sequence[str], until_idle: float = math.inf) -> list[Child]:
    """Return the processes of these halves of a hospital, "service", "relay" or both.

    After `until_idle` seconds without a message the relay ends, and then all other processes.
    """
    service = []
    if "service" in halves:
        command = (sys.executable, "-m", "client.deploy.host", str(settings.folder))
        # Its home is another than ours.
        environment = processes.child_environment(settings.private, **{catalogue.MODELS: str(catalogue.root())})
        service.append(Child(name="service", command=command, environment=environment, ready=READY))
        if settings.metrics_port is not None:
            metrics = (sys.executable, "-m", "client.deploy.metrics", str(settings.folder))
            service.append(Child(name="metrics", command=metrics, environment=environment))
    return service + (_relay(settings, processes.free_port(), until_idle) if "relay" in halves else [])


def _relay(settings: HospitalSettings, port: int, until_idle: float) -> list[Child]:
    environment = processes.child_environment(settings.node)
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
        ready=f"node/{REACHED}",
        note=f"node/{NOTE}",
        reason=reason_in,
    )
    relay = Child(
        name="relay",
        command=(
            *(sys.executable, "-m", "client.flower.relay", f"{HOST}:{port}", settings.bundle, secret, certificate),
            str(until_idle),
        ),
        environment=environment | {SOCKET_NAME: SOCKET},
        user=settings.relay_user,
        ends_all=True,
    )
    return [supernode, relay]


def _stop(chosen: argparse.Namespace) -> Iterator[str]:
    check_folder(chosen.folder)  # client.yaml need not be valid: what runs must end
    yield "stopped" if processes.stop(chosen.folder.resolve(), SIDES["both"]) else "nothing was running"
