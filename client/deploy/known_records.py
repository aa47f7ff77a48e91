"""A note of this account's hospital folders and their records, since two folders for one file would double its budget.

    $XDG_STATE_HOME/caucus/records.json, or ~/.local/state/caucus/records.json      0600

`init` adds the folder, the path of its file of records, and a keyed digest of the file's bytes. The key is in the note,
and nowhere else. `init` reports a path or a digest that another folder already has. If that folder is gone, its ledger
is too: `check` reports it until `ledger accept --lost` has charged what it spent. The note cannot detect a folder of
another account or machine, or a copy with different bytes at another path. It is only an aid: problems with it are
reported, and `init` continues.

To remove a folder from the note, for example after it has moved, delete its object from `folders`.
"""

import hmac
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from common.rng import secure_bytes
from common.system.files import SECRET, content_of, write_atomic

_KEY_BYTES = 32
_UNKNOWN = "WARNING: whether another folder has the same records is not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noted:
    """A folder, its file of records, and the keyed digest of that file's bytes in hexadecimal.

    `former` names the folders over the same records that are gone, and whose charges this folder's ledger lacks.
    """

    folder: str
    records: str
    digest: str
    former: tuple[str, ...] = ()


def note(folder: Path, records: Path) -> Iterator[str]:
    """Add this folder and its records to the note; yield a warning if another folder has them or if this fails."""
    try:
        path = note_path()
        key, before, problem = _read(path)
        if problem:
            yield f"{_UNKNOWN}: {problem}"
        digest = hmac.digest(key, records.read_bytes(), "sha256").hex()
        new = _Noted(folder=str(folder.resolve()), records=str(records.resolve()), digest=digest)
        same = [noted for noted in before if noted.records == new.records or noted.digest == new.digest]
        there = [noted for noted in same if noted.folder != new.folder and (Path(noted.folder) / "private").exists()]
        gone = [noted for noted in same if noted not in there]
        former = dict.fromkeys(name for noted in gone for name in (*noted.former, noted.folder))
        new = replace(new, former=tuple(former))
        others = [noted for noted in before if noted not in gone and noted.folder != new.folder]
        if there:
            named = ", ".join(noted.folder for noted in there)
            warning = f"WARNING: {named} has the same records, and budgets of two folders over one file add up"
            yield f"{warning}: use one folder, or caucus-party rotate"
        if former:
            yield f"WARNING: {_how_to_charge(new)}"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write(path, key, [*others, new])
    except (OSError, RuntimeError) as error:  # RuntimeError: an account without a home
        yield f"{_UNKNOWN}, or not the next time: {error}"


def former_folders(folder: Path) -> tuple[str, ...]:
    """Return the folders over this folder's records that are gone, and whose charges this folder's ledger lacks."""
    noted = _noted(folder)
    return noted.former if noted else ()


def advice_on_former(folder: Path) -> list[str]:
    """Return advice if a former folder over the same records is gone; empty otherwise."""
    noted = _noted(folder)
    return [_how_to_charge(noted)] if noted and noted.former else []


def settle(folder: Path) -> Iterator[str]:
    """Note that this folder's ledger has what former folders spent; yield a warning if this fails."""
    try:
        path = note_path()
        key, entries, problem = _read(path)
        settled = [replace(one, former=()) if one.folder == str(folder.resolve()) else one for one in entries]
        if not problem and settled != entries:
            _write(path, key, settled)
    except (OSError, RuntimeError) as error:
        yield f"WARNING: check will still report a former folder over the same records: {error}"


def _how_to_charge(noted: _Noted) -> str:
    former = " and ".join(noted.former)
    return (
        f"{former} had the same records, and is gone with its ledger. Charge what it spent: caucus-party ledger accept "
        f"{noted.folder} --lost EPSILON (0 if it answered nothing, inf if nobody knows)"
    )


def _noted(folder: Path) -> _Noted | None:
    try:
        return next((noted for noted in _read(note_path())[1] if noted.folder == str(folder.resolve())), None)
    except (OSError, RuntimeError):
        return None


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
