"""A note of this account's hospital folders and their records, since two folders for one file would double its budget.

    $XDG_STATE_HOME/caucus/records.json, or ~/.local/state/caucus/records.json      0600

`init` adds the folder, the path of its file of records, and a keyed digest of the file's bytes. The key is in the note,
and nowhere else. `init` reports a path or a digest that another folder already has. A folder that is gone, or whose
hospital left, is a former folder. Until its charges are in the ledger of a folder over the same records, `start`
refuses that ledger, and `check` and `status` say why:

    gone    its ledger is, too: `ledger accept --lost` charges what it spent
    left    its ledger is sealed: a new folder copies it before its first start; else `ledger accept --lost`, too

Then `settle` removes the former folder from the note. The note cannot detect a folder of another account or machine, or
a copy with different bytes at another path. It is only an aid: problems with it are reported, and `init` continues.

To remove a folder from the note, for example after it has moved, delete its object from `folders`.
"""

import hmac
import json
import os
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from client.deploy.left import Left
from client.noted_head import is_missing
from common.errors import CaucusError, LedgerError
from common.ledger.ledger import Ledger
from common.rng import secure_bytes
from common.system.files import SECRET, content_of, write_atomic

_KEY_BYTES = 32
_COPIED = ("ledger.db", "ledger.head", "audit.jsonl")
"""What a new folder takes over from that of a hospital that left."""
_UNKNOWN = "WARNING: whether another folder has the same records is not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noted:
    """A folder, its file of records, and the keyed digest of that file's bytes in hexadecimal.

    `former` names what was at the same path before, over the same records, and is gone with its ledger.
    """

    folder: str
    records: str
    digest: str
    former: tuple[str, ...] = ()

    @property
    def is_former(self) -> bool:
        """Whether the folder is gone, or its hospital left."""
        return not (Path(self.folder) / "private").exists() or _left(self.folder) is not None

    def shares_records(self, other: "_Noted") -> bool:
        """Return whether both folders are noted with one path of records, or with the same bytes."""
        return self.records == other.records or self.digest == other.digest


def note(folder: Path, records: Path) -> Iterator[str]:
    """Add this folder and its records to the note; yield a warning if another folder has them or if this fails."""
    try:
        path = note_path()
        key, before, problem = _read(path)
        if problem:
            yield f"{_UNKNOWN}: {problem}"
        digest = hmac.digest(key, records.read_bytes(), "sha256").hex()
        new = _Noted(folder=str(folder.resolve()), records=str(records.resolve()), digest=digest)
        same = [noted for noted in before if noted.shares_records(new)]
        former = [name for noted in same if noted.folder == new.folder for name in (*noted.former, noted.folder)]
        new = replace(new, former=tuple(dict.fromkeys(former)))
        there = ", ".join(noted.folder for noted in same if noted.folder != new.folder and not noted.is_former)
        if there:
            warning = f"WARNING: {there} has the same records, and budgets of two folders over one file add up"
            yield f"{warning}: use one folder, or caucus-party rotate"
        entries = [*(noted for noted in before if noted.folder != new.folder), new]
        yield from (f"WARNING: {advice}" for advice in _advice(new, entries))
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write(path, key, entries)
    except (OSError, RuntimeError) as error:  # RuntimeError: an account without a home
        yield f"{_UNKNOWN}, or not the next time: {error}"


def former_folders(folder: Path) -> tuple[str, ...]:
    """Return the former folders over this folder's records whose charges this folder's ledger lacks."""
    noted, entries = _noted(folder)
    return _unsettled(noted, entries) if noted else ()


def advice_on_former(folder: Path) -> list[str]:
    """Return how to settle the former folders whose charges this folder's ledger lacks; empty if there are none."""
    noted, entries = _noted(folder)
    return _advice(noted, entries) if noted else []


def settle(folder: Path) -> Iterator[str]:
    """Note that this folder's ledger has what former folders spent; yield a warning if this fails."""
    try:
        path = note_path()
        key, entries, problem = _read(path)
        mine = next((noted for noted in entries if noted.folder == str(folder.resolve())), None)
        if problem or mine is None:
            return
        others = [noted for noted in entries if noted != mine and not (noted.shares_records(mine) and noted.is_former)]
        settled = [*others, replace(mine, former=())]
        if len(settled) < len(entries) or mine.former:
            _write(path, key, settled)
    except (OSError, RuntimeError) as error:
        yield f"WARNING: check will still report a former folder over the same records: {error}"


def _unsettled(mine: _Noted, entries: Iterable[_Noted]) -> tuple[str, ...]:
    others = [noted for noted in entries if noted.folder != mine.folder and noted.shares_records(mine)]
    former = [*mine.former, *(name for other in others if other.is_former for name in (*other.former, other.folder))]
    ledger = Path(mine.folder) / "private" / "ledger.db"
    return tuple(name for name in dict.fromkeys(former) if not ((left := _left(name)) and _has(ledger, left.head)))


def _has(ledger: Path, head: str) -> bool:
    """Return whether a ledger continues the one with this head; the empty head is that of no ledger."""
    if not head:
        return True
    try:
        Ledger(ledger, read_only=True, head=head)
    except LedgerError:
        return False
    return True


def _left(folder: str) -> Left | None:
    """Return how the hospital of a folder left; None if it did not, or if this cannot be read."""
    try:
        return Left.of(Path(folder))
    except (OSError, CaucusError):
        return None


def _advice(mine: _Noted, entries: Iterable[_Noted]) -> list[str]:
    unsettled = _unsettled(mine, entries)
    left = {name: sealed for name in unsettled if (sealed := _left(name))}
    gone = " and ".join(name for name in unsettled if name not in left)
    accept = f"caucus-party ledger accept {mine.folder} --lost EPSILON"
    advice = []
    if gone:
        known = "(0 if it answered nothing, inf if nobody knows)"
        advice.append(
            f"{gone} had the same records, and is gone with its ledger. Charge what it spent: {accept} {known}"
        )
    for name, sealed in left.items():
        had = f"{name} had the same records, and left on {sealed.date}"
        if is_missing(Path(mine.folder) / "private" / "ledger.db"):
            kept = [str(Path(name) / file) for file in sealed.sha256 if Path(file).name in _COPIED]
            copy = shlex.join(["install", "-m", "600", *kept, f"{mine.folder}/private/"])
            advice.append(f"{had}. Copy its ledger before the first start: {copy}")
        else:
            advice.append(f"{had}. Charge what caucus-party ledger show {name} prints: {accept}")
    return advice


def _noted(folder: Path) -> tuple[_Noted | None, list[_Noted]]:
    """Return what is noted of a folder, if anything is, and all entries of the note."""
    try:
        entries = _read(note_path())[1]
        return next((noted for noted in entries if noted.folder == str(folder.resolve())), None), entries
    except (OSError, RuntimeError):
        return None, []


def note_path() -> Path:
    """Return the path of this account's note; raise a RuntimeError if the account has no home."""
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (state if state.is_absolute() else Path.home() / ".local" / "state") / "caucus" / "records.json"


def _read(path: Path) -> tuple[bytes, list[_Noted], str]:
    """Return the note's key, its entries, and a warning, which is empty if the note is valid or missing.

    If the note is missing or invalid, the key is new and there are no entries.
    """
    if not path.exists():
        return secure_bytes(_KEY_BYTES), [], ""
    try:
        content = json.loads(content_of(path))
        key = bytes.fromhex(content["key"])
        entries = [_entry(**entry) for entry in content["folders"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        key, entries = b"", []
    if len(key) != _KEY_BYTES:
        return secure_bytes(_KEY_BYTES), [], f"{path} was no valid note, and is replaced"
    return key, entries, ""


def _entry(*, former: Iterable[object] = (), **texts: object) -> _Noted:
    return _Noted(**{name: str(value) for name, value in texts.items()}, former=tuple(map(str, former)))


def _write(path: Path, key: bytes, entries: Iterable[_Noted]) -> None:
    content = {"key": key.hex(), "folders": [asdict(noted) for noted in entries]}
    write_atomic(path, json.dumps(content, indent=1).encode(), mode=SECRET)
