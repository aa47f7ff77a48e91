"""`caucus-party rotate`, `invitation` and `refresh`: new keys, a new invitation or new records; the ledger stays.

A hospital with new keys is still the same hospital, because its budget across all runs is tied to its records, not to
its keys. The new keys are therefore created in the same folder as the old ones, so that there is no step at which the
ledger could be left behind.
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from client import database
from client.deploy.create import MAX_RECORDS, check_number, load_invitation, new_keys
from client.deploy.settings import SIDES, HospitalSettings
from common.errors import ConfigError
from common.system import locks
from common.system.commands import Commands, add_command, add_folder
from common.system.enrolment import PartyFile
from common.system.files import SECRET, content_of, write_atomic


def register(commands: Commands) -> None:
    """Add the `rotate`, `invitation` and `refresh` commands."""
    rotate = add_command(
        commands,
        "rotate",
        _rotate,
        summary="replace this hospital's keys; ledger, settings and log stay",
        description="Make a new identity, a new node key, a new secret for the relay, and a new party.json. "
        "The coordinator has to remove the hospital and enrol it again.",
        example="caucus-party rotate hospital",
    )
    invitation = add_command(
        commands,
        "invitation",
        _invitation,
        summary="take a new invitation of the coordinator",
        description="Take the coordinator's address, bundle and authority from a new invitation.",
        example="caucus-party invitation hospital invitation.json",
    )
    refresh = add_command(
        commands,
        "refresh",
        _refresh,
        summary="take the records of a database again",
        description="Run the query of a database again, and replace the copy of its rows that the service reads. A run "
        "that has begun with the rows before is refused from then on.",
        example="caucus-party refresh hospital notes.sql.yaml",
    )
    for parser in (rotate, invitation, refresh):
        add_folder(parser, "caucus-party")
    rotate.add_argument("--max-records", type=int, metavar="N", help=f"{MAX_RECORDS}; default: as before")
    invitation.add_argument("file", metavar="FILE", type=Path, help="invitation.json from the coordinator")
    refresh.add_argument("query", metavar="FILE", type=Path, help=f"NAME{database.ENDING}, as for init --records")


def _rotate(chosen: argparse.Namespace) -> Iterator[str]:
    settings = HospitalSettings.load(chosen.folder)
    locks.check_free(settings.folder, SIDES["both"], stop=f"caucus-party stop {chosen.folder}")
    most = settings.party_file().max_records if chosen.max_records is None else chosen.max_records
    public, keys = new_keys(settings.name, most)
    if chosen.max_records is not None:
        check_number(len(settings.read_records(may_be_empty=True)), public)
    for path, key in keys.items():
        write_atomic(settings.folder / path, key, mode=SECRET)
    write_atomic(settings.folder / PartyFile.FILE, public.to_json().encode())
    yield f"new keys are in {chosen.folder}; send {chosen.folder / 'party.json'} to the coordinator, who removes this"
    yield "hospital and enrols it again; runs that were under way end without it"
    yield f"fingerprint, to be compared by telephone: {public.fingerprint}"
    yield f"then: caucus-party roster {chosen.folder} roster.json; caucus-party start {chosen.folder}"


def _invitation(chosen: argparse.Namespace) -> Iterator[str]:
    settings = HospitalSettings.load(chosen.folder)
    invitation = load_invitation(chosen.file)
    path, authority = settings.folder / "client.yaml", settings.node / "ca.crt"
    text = path.read_text(encoding="utf-8")
    for key, value in (("coordinator", invitation.address), ("bundle", invitation.bundle)):
        text = re.sub(rf'^{key}:[ ]*("[^"\n]*"|[^\s#]+)', f'{key}: "{value}"', text, count=1, flags=re.MULTILINE)
        if yaml.safe_load(text).get(key) != value:
            raise ConfigError("client.yaml", expected=f"a line with {key}", where=path, do=f"Write {value} there")
    same_authority = authority.exists() and content_of(authority) == invitation.certificate.encode()
    write_atomic(authority, invitation.certificate.encode(), mode=SECRET)
    write_atomic(path, text.encode(), mode=SECRET)
    yield f"coordinator's fingerprint, to be compared by telephone: {invitation.fingerprint}"
    for what, same in (
        (f"coordinator: {invitation.address}", invitation.address == settings.coordinator),
        (f"bundle: {invitation.bundle}", invitation.bundle == settings.bundle),
        ("certificate of its authority", same_authority),
    ):
        yield f"{what}{'' if same else ' (changed)'}"
    yield f"then: caucus-party check {chosen.folder}; caucus-party stop {chosen.folder}, and start it again"


def _refresh(chosen: argparse.Namespace) -> Iterator[str]:
    settings = HospitalSettings.load(chosen.folder)
    copy = settings.private / database.COPY
    if settings.records != copy.resolve():
        expected = f"{copy}, which init makes of a database"
        do = f"Make a folder with init --records NAME{database.ENDING}"
        raise ConfigError("records in client.yaml", expected=expected, got="another file", do=do)
    remarks = list[str]()
    private = database.read_database(chosen.query, labelled=settings.labelled, remarks=remarks)
    check_number(len(private), settings.party_file())
    content = database.as_json_lines(private, labelled=settings.labelled)
    before = copy.read_bytes() if copy.exists() else None
    if content != before:
        write_atomic(copy, content, mode=SECRET)
    yield f"{len(private)} record{'s' * (len(private) != 1)} from {chosen.query} (known only here)"
    yield from (f"{chosen.query.name}: {remark}" for remark in remarks)
    if content == before:
        yield "they are the same as before, in the same order"
    else:
        yield "runs that began with the records before are refused from now on; stop and start the service for new ones"
