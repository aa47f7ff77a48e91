"""`caucus-party refresh`: takes the records of a database again, in place of the copy that `init` or a refresh made."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from client import database
from client.deploy.create import check_number
from client.deploy.settings import HospitalSettings
from common.errors import ConfigError
from common.structure import check_records
from common.system.commands import Commands, add_command, add_folder
from common.system.files import SECRET, write_atomic


def register(commands: Commands) -> None:
    """Add the `refresh` command."""
    parser = add_command(
        commands,
        "refresh",
        _refresh,
        summary="take the records of a database again",
        description="Run the query of a database again, and replace the copy of its rows that the service reads. A run "
        "that has begun with the rows before is refused from then on.",
        example="caucus-party refresh hospital notes.sql.yaml",
    )
    add_folder(parser, "caucus-party")
    parser.add_argument("query", metavar="FILE", type=Path, help=f"NAME{database.ENDING}, as for init --records")


def _refresh(chosen: argparse.Namespace) -> Iterator[str]:
    settings = HospitalSettings.load(chosen.folder)
    copy = settings.private / database.COPY
    if settings.records != copy.resolve():
        expected = f"{copy}, which init makes of a database"
        do = f"Make a folder with init --records NAME{database.ENDING}"
        raise ConfigError("records in client.yaml", expected=expected, got="another file", do=do)
    remarks = list[str]()
    private = database.read(chosen.query, labelled=settings.labelled, remarks=remarks)
    check_number(len(private), settings.party_file())
    if settings.structure:
        check_records(private, settings.structure, chosen.query)
    content = database.as_json_lines(private, labelled=settings.labelled)
    before = copy.read_bytes() if copy.exists() else None
    if content != before:
        write_atomic(copy, content, mode=SECRET)
    yield f"{len(private)} record{'s' * (len(private) != 1)} from {chosen.query} (known here alone)"
    yield from (f"{chosen.query.name}: {remark}" for remark in remarks)
    if content == before:
        yield "they are the same as before, in the same order"
    else:
        yield "runs that began with the records before are refused from now on; stop and start the service for new ones"
