"""`caucus-party leave`: ends a hospital's part, seals what must be kept, and deletes the rest of its folder.

    FOLDER/private/ledger.db      kept: it shows what was spent, so that a new folder does not give the budget back
    FOLDER/private/ledger.head    kept: the ledger's head, with which `ledger verify` compares
    FOLDER/private/audit.jsonl    kept: it shows what was asked, answered and decided, and by whom
    FOLDER/left.json              written: who left, when, the head, and the SHA-256 of each kept file (`left.py`)

Keys, settings, plans, received texts, logs, sockets and a copy of a database's records are deleted, and nothing outside
of the folder. `client.yaml` is deleted last, so that the command can be repeated after an interruption. A file that
Caucus did not make stays.
"""

import argparse
import hashlib
import shlex
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

from client import database
from client.audit_log import account
from client.deploy.known_records import note_path
from client.deploy.left import LEFT, Left
from client.deploy.settings import SIDES, HospitalSettings
from common.errors import CaucusError, ConfigError
from common.ledger.ledger import Ledger
from common.models import catalogue
from common.system import locks, processes
from common.system.commands import Commands, add_command, add_folder
from common.system.enrolment import PartyFile
from common.system.files import SECRET, content_of, write_atomic
from common.system.log_lines import now, utc
from common.system.progress import is_agreed

SEALED = 0o400
"""Mode of the files that are kept: only this account can read them, and only after a change can it write them."""
OWN = ("node", "logs", "run", "roster.json", PartyFile.FILE)
"""Files and folders of Caucus beside `private` and `client.yaml`."""


def register(commands: Commands) -> None:
    """Add the `leave` command."""
    parser = add_command(
        commands,
        "leave",
        _leave,
        summary="end this hospital's part: seal ledger and audit log, delete everything else of its folder",
        description="Stop the hospital's processes, seal its ledger and audit log, and delete keys, settings, plans, "
        "received texts and logs. Nothing outside of the folder is deleted. It asks first.",
        example="caucus-party leave hospital",
    )
    add_folder(parser, "caucus-party")
    parser.add_argument("--yes", action="store_true", help="leave without asking")


def _leave(chosen: argparse.Namespace) -> Iterator[str]:
    folder = chosen.folder.resolve()
    if left := Left.of(folder):
        yield f"this hospital left {utc(left.left)} UTC; what it keeps is sealed"
        return
    settings = HospitalSettings.load(chosen.folder)
    if settings.private.is_symlink():
        raise ConfigError("the private folder is a link", where=settings.private, do="Move the folder itself here")
    yield f"{settings.name} leaves: keys, settings, plans, received texts and logs in {folder} are deleted for ever"
    yield "ledger and audit log are kept, sealed; open runs end without this hospital"
    do = "Read Leave in configs/deployment/OPERATIONS.md, then add --yes to leave"
    if not (chosen.yes or is_agreed("leave?", what="leaving", do=do)):
        raise CaucusError("this hospital does not leave", do="Nothing was changed")
    processes.stop(folder, SIDES["both"])
    with locks.hold_locks(folder, SIDES["both"], stop=f"caucus-party stop {chosen.folder}"):
        head = _close_ledger(settings)
        kept = sorted(path for path in settings.private.glob("*") if _is_kept(path))
        for path in kept:
            path.chmod(SEALED)
        _clear(settings.private, {*kept, *_own_records(settings)})
        for name in OWN:
            _delete(folder / name, *_own_records(settings))
        digests = {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in kept}
        Left(
            hospital=settings.name,
            left=now(),
            by=account(),
            head=head,
            sha256=digests,
            lifetime_delta=settings.party.limits.lifetime_delta,
        ).write(folder, mode=SEALED)
        (folder / "client.yaml").unlink()
    yield from (f"kept, read-only: {folder / name}, SHA-256 {digest}" for name, digest in digests.items())
    yield f"the ledger's head is {head}; write it down elsewhere" if head else "this hospital never answered anything"
    yield from _untouched(settings, kept)
    yield "not stopped: a page of this hospital (caucus-party page); it shows nothing any more: end it with Ctrl-C"
    removal = f"caucus-coordinator remove FOLDER {shlex.quote(settings.name)}"
    yield f"tell the coordinator that {settings.name} leaves, for: {removal}"


def _close_ledger(settings: HospitalSettings) -> str:
    """Erase the answers and sample keys of open runs, and return the ledger's head; empty if there is no ledger.

    Raises:
        LedgerError: The service would not start with this ledger; `caucus-party ledger accept` comes first.
    """
    note = settings.noted_head
    if note.unused(settings.ledger):
        return ""
    for path in (settings.ledger, note.path):
        if path.exists():
            path.chmod(SECRET)  # an interrupted command has sealed it
    ledger: Ledger = note.opened(settings.ledger)
    for run in {entry.run for entry in ledger.entries()}:
        ledger.forget(run)
    note.write(ledger)
    head = ledger.verify().chain
    if note.path != settings.private / "ledger.head":
        write_atomic(settings.private / "ledger.head", content_of(note.path), mode=SECRET)
    return head


def _own_records(settings: HospitalSettings) -> tuple[Path, ...]:
    """Return the file of records, which is the hospital's own; empty if Caucus copied it out of a database."""
    return () if settings.records == settings.private / database.COPY else (settings.records,)


def _is_kept(path: Path) -> bool:
    """Return whether a file is the ledger, its head or the audit log, or one of these that was moved aside."""
    return (
        path.is_file() and not path.is_symlink() and path.name.startswith(("ledger.db", "ledger.head", "audit.jsonl"))
    )


def _clear(folder: Path, kept: Collection[Path]) -> None:
    """Delete everything in a folder except the kept files and the folders that contain one."""
    for path in folder.iterdir() if folder.exists() else ():
        if not any(one.is_relative_to(path) for one in kept):
            _delete(path)
        elif path not in kept:
            _clear(path, kept)


def _delete(path: Path, *kept: Path) -> None:
    """Delete a file, a link or a whole folder, whose links are not followed; keep these files in it."""
    if path.is_symlink() or path.is_file() or path.is_socket():
        path.unlink()
    elif any(one.is_relative_to(path) for one in kept):
        _clear(path, kept)
    elif path.exists():
        shutil.rmtree(path)


def _untouched(settings: HospitalSettings, kept: Collection[Path]) -> Iterator[str]:
    """Name what stays although it is not sealed, since it is not in the folder or not of Caucus."""
    folder, note = settings.folder, settings.noted_head.path
    others = [path for path in sorted(folder.iterdir()) if path not in {settings.private, folder / LEFT}]
    outside = [f"your records: {path}" for path in _own_records(settings)]
    outside += [*(f"not of this command: {path}" for path in others)]
    if note not in kept and note.exists():
        outside.append(f"the noted head: {note}")
    try:
        outside += [f"models, also of other folders: {catalogue.root()}"] if catalogue.root().exists() else []
        outside.append(f"the note that leads a later init over these records to this ledger: {note_path()}")
    except (ConfigError, RuntimeError):
        pass  # an account without a home has neither
    yield from (f"not touched: {line}" for line in outside)
