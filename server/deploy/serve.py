"""`caucus-coordinator serve` and `stop`: three processes that are kept running.

superlink    Flower's, on loopback; remembers nodes and messages in superlink.db    server/flower/superlink.py
executor     starts the ServerApp of each run; knows SuperLink's secret            server/flower/executor.py
front_door   the only public endpoint                                              server/flower/front_door.py

One risk remains: root and the coordinator's own account have full control over these processes, so no other person or
service should use that account.
"""

import argparse
import logging
import os
import shlex
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace

from common.errors import ConfigError
from common.models import catalogue
from common.system import locks, processes
from common.system.commands import Commands, add_command, add_folder
from common.system.files import check_secret
from common.system.network_variables import HTTPX, check_network_variables
from common.system.processes import Child
from server.deploy.authority import check_certificate, ending_soon
from server.deploy.run_state import GOES_ON, mark_stopped, progress, run_folders
from server.deploy.settings import LOCKS, CoordinatorSettings
from server.flower.commands import TOKEN, write_connection

NETWORK = replace(HTTPX, proxies=("https_proxy",))
"""The variables about the network that count for a run's models."""
PASSED_ON = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "HTTPS_PROXY", "https_proxy", *NETWORK.certificates)
"""Environment variables for a run's models, a proxy on the way to them, and the certificates that they trust. Of the
three processes, only the executor receives these variables and passes them on to the ServerApp."""


def register(commands: Commands) -> None:
    """Add the `serve` and `stop` commands."""
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
        add_folder(parser, "caucus-coordinator")


def _serve(chosen: argparse.Namespace) -> Iterator[str]:
    settings = CoordinatorSettings.load(chosen.folder)
    with locks.hold_locks(settings.folder, LOCKS, stop=f"caucus-coordinator stop {chosen.folder}"):
        check_certificate(settings.folder)
        check_network_variables(NETWORK)
        check_secret(settings.folder / "superexec.secret")
        for address in ((settings.listen, settings.port), ("127.0.0.1", settings.superlink_port)):
            _free(*address)
        write_connection(settings.folder, settings.superlink)
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stdout)
        if os.geteuid() == 0:
            yield (
                "started as root, and so is the code of every run: "
                "give the coordinator a separate account, as caucus-coordinator.service does"
            )
        yield from ending_soon(settings.folder)
        yield f"hospitals connect to {settings.address}; logs are in {settings.folder / 'logs'}"
        processes.supervise(
            _children(settings),
            folder=settings.folder,
            names=LOCKS,
            before_end=lambda: mark_stopped(settings.folder / "runs"),
        )


def _children(settings: CoordinatorSettings) -> list[Child]:
    environment = processes.child_environment(settings.folder)
    models = {catalogue.MODELS: str(catalogue.root())}  # the home of children is another than ours
    direct = [os.environ.get("no_proxy") or os.environ.get("NO_PROXY"), "localhost,127.0.0.1,::1"]  # as SuperLink is
    passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    models |= passed_on | {"no_proxy": ",".join(filter(None, direct))}
    secret = "superexec.secret"  # noqa: S105 a path
    superlink = [sys.executable, "-m", "server.flower.superlink", TOKEN]
    superlink += ["--host", "127.0.0.1", "--port", str(settings.superlink_port)]
    superlink += ["--ssl-ca-certfile", "ca.crt", "--ssl-certfile", "server.crt", "--ssl-keyfile", "server.key"]
    superlink += ["--enable-supernode-auth", "--isolation", "process", "--superexec-auth-secret-file", secret]
    superlink += ["--disable-runtime-dependency-installation", "--database", "superlink.db"]
    executor = [sys.executable, "-m", "server.flower.executor", settings.superlink, "ca.crt", secret]
    door = [sys.executable, "-m", "server.flower.front_door", settings.listen, str(settings.port), settings.superlink]
    door += ["server.crt", "server.key", "ca.crt", TOKEN]
    return [
        Child(name="superlink", command=superlink, environment=environment),
        Child(name="executor", command=executor, environment=environment | models),
        Child(name="front_door", command=door, environment=environment),
    ]


def _free(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigError(
                "port", expected="a free one", got=error.strerror, where=f"{host}:{port}", do="Change coordinator.yaml"
            ) from None


def _stop(chosen: argparse.Namespace) -> Iterator[str]:
    if not (chosen.folder / "coordinator.yaml").is_file():  # it need not be valid: what runs must end
        do = "Give the folder of caucus-coordinator init"
        raise ConfigError("coordinator's folder", expected="coordinator.yaml", got="none", where=chosen.folder, do=do)
    if processes.status(chosen.folder.resolve(), LOCKS[0]):
        for state in map(progress, run_folders(chosen.folder / "runs")):
            if state.status in GOES_ON:
                resume = shlex.join(["caucus-coordinator", "resume", str(chosen.folder), state.name])
                yield f"run {state.name} is {state}: it stops with the coordinator; after serve, {resume} continues it"
    yield "stopped" if processes.stop(chosen.folder.resolve(), LOCKS) else "nothing was running"
