"""A note of this account's hospital folders and their records, since two folders for one file would double its budget.

    $XDG_STATE_HOME/caucus/records.json, or ~/.local/state/caucus/records.json      0600

`init` adds the folder, the path of its file of records, and a keyed digest of the file's bytes. The key is in the note,
and nowhere else. `init` reports a path or a digest that another folder already has. It cannot detect a folder of
another account or machine, or a copy with different bytes at another path. The note is only an aid: problems with it
are reported, and `init` continues.
"""

import hmac
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from common.rng import secure_bytes
from common.system.files import SECRET, content_of, write_atomic

_KEY_BYTES = 32
_UNKNOWN = "WARNING: whether another folder has the same records is not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noted:
    """A folder, its file of records, and the keyed digest of that file's bytes in hexadecimal."""

    folder: str
    records: str
    digest: str


def note(folder: Path, records: Path) -> Iterator[str]:
    """Add this folder and its records to the note; yield a warning if another folder has them or if this fails."""
    try:
        path = note_path()
        key, before, problem = _read(path)
        if problem:
            yield f"{_UNKNOWN}: {problem}"
        digest = hmac.digest(key, records.read_bytes(), "sha256").hex()
        new = _Noted(folder=str(folder.resolve()), records=str(records.resolve()), digest=digest)
        others = [noted for noted in before if noted.folder != new.folder]
        same = [
            noted.folder
            for noted in others
            if (noted.records == new.records or noted.digest == new.digest)
            and (Path(noted.folder) / "private").exists()
        ]
        if same:
            warning = (
                f"WARNING: {', '.join(same)} has the same records, and budgets of two folders over one file add up"
            )
            yield f"{warning}: use one folder, or caucus-party rotate"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        content = {"key": key.hex(), "folders": [asdict(noted) for noted in (*others, new)]}
        write_atomic(path, json.dumps(content, indent=1).encode(), mode=SECRET)
    except (OSError, RuntimeError) as error:  # RuntimeError: an account without a home
        yield f"{_UNKNOWN}, or not the next time: {error}"


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
        entries = [_Noted(**{name: str(value) for name, value in entry.items()}) for entry in content["folders"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        key, entries = b"", []
    if len(key) != _KEY_BYTES:
        return secure_bytes(_KEY_BYTES), [], f"{path} was no valid note, and is replaced"
    return key, entries, ""
