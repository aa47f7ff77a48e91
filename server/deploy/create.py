"""`caucus-coordinator init`, `renew` and `invite`: authority, server's certificate, bundle and invitation."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from common.address import check_host, host_and_port
from common.rng import secure_bytes
from common.secagg.messages import VERSION
from common.system.commands import Commands, add_command
from common.system.enrolment import Invitation
from common.system.files import SECRET, whole_folder, write_atomic
from common.versions import CAUCUS
from server.deploy.authority import make_authority, make_certificate
from server.deploy.enrolment import enrolled_parties, store_parties
from server.deploy.settings import YAML, CoordinatorSettings
from server.flower.commands import write_bundle, write_connection


def register(commands: Commands) -> None:
    """Add the `init`, `renew` and `invite` commands."""
    init = add_command(
        commands,
        "init",
        _init,
        summary="create the coordinator's authority, certificate and invitation",
        description="Create a folder with a certificate authority, the server's certificate, an empty roster, and "
        "invitation.json for the hospitals.",
        example="caucus-coordinator init coordinator --address caucus.example.org:9443",
    )
    init.add_argument("--address", required=True, help="host:port that the hospitals will connect to")
    init.add_argument("--listen", help="address to listen on (0.0.0.0, or :: if the address above is an IPv6 address)")
    init.add_argument("--superlink-port", type=int, default=39090, help="loopback port of SuperLink (%(default)d)")
    renew = add_command(
        commands,
        "renew",
        _renew,
        summary="renew the server's certificate",
        description="Create a new certificate for the server, signed by the same authority: hospitals need not act.",
        example="caucus-coordinator renew coordinator",
    )
    invite = add_command(
        commands,
        "invite",
        _invite,
        summary="rewrite bundle, invitation and roster, after an upgrade or with another address",
        description="Write the bundle of the installed version, invitation.json with its hash and the address of "
        "coordinator.yaml, and the roster. Hospitals take them with caucus-party invitation and roster.",
        example="caucus-coordinator invite coordinator",
    )
    for parser in (init, renew, invite):
        parser.add_argument("folder", metavar="FOLDER", type=Path, help="the coordinator's folder")


def _init(chosen: argparse.Namespace) -> Iterator[str]:
    folder: Path = chosen.folder
    host, _ = host_and_port("--address", chosen.address)
    listen = chosen.listen or ("::" if ":" in host else "0.0.0.0")  # noqa: S104 the front door is for all
    check_host("--listen", listen)
    port = chosen.superlink_port
    settings = CoordinatorSettings(folder=folder.resolve(), address=chosen.address, listen=listen, superlink_port=port)
    text = YAML.format(
        folder=folder, address=json.dumps(settings.address), listen=json.dumps(listen), superlink_port=port
    )
    with whole_folder(folder):
        write_atomic(folder / "coordinator.yaml", text.encode())
        for name in ("runs", "run", "logs"):
            (folder / name).mkdir(mode=0o700)
        make_authority(folder)
        make_certificate(folder, host)
        write_atomic(folder / "superexec.secret", secure_bytes(32).hex().encode(), mode=SECRET)
        write_connection(settings.folder, settings.superlink)
        invited = _invite_to(settings)
    yield from invited
    yield f"then: caucus-coordinator serve {folder}; caucus-coordinator enrol {folder} party.json, for each hospital"


def _invite(chosen: argparse.Namespace) -> Iterator[str]:
    settings = CoordinatorSettings.load(chosen.folder)
    yield from _invite_to(settings)
    if parties := enrolled_parties(settings):
        store_parties(settings, parties)
        yield f"send {settings.folder / 'roster.json'} as well after an upgrade: its form may have changed"


def _invite_to(settings: CoordinatorSettings) -> tuple[str, str]:
    """Write the bundle and the invitation; return the lines that tell so."""
    bundle = write_bundle(settings.folder / "bundle", CAUCUS)
    certificate = (settings.folder / "ca.crt").read_text()
    invitation = Invitation(address=settings.address, certificate=certificate, bundle=bundle, protocol=VERSION)
    write_atomic(settings.folder / "invitation.json", invitation.to_json().encode())
    return (
        f"send {settings.folder / 'invitation.json'} to the hospitals",
        f"fingerprint, to be compared by telephone: {invitation.fingerprint}",
    )


def _renew(chosen: argparse.Namespace) -> Iterator[str]:
    settings = CoordinatorSettings.load(chosen.folder)
    make_certificate(settings.folder, settings.host)
    yield "renewed; restart caucus-coordinator serve"
