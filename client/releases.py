"""The releases of runs that this hospital answered, as the coordinator sent them, to be audited by this hospital.

    FOLDER/releases/HEX.jsonl    the run's synthetic texts; HEX is as in `runs/HEX.json` (`client/approval/entries.py`)
    FOLDER/releases/HEX.json     the run's name, when the texts came, and how many there are

A coordinator may send anything. So a release is accepted only for a run and plan that this hospital approved and
answered, only once, only within limits on size and number, only if the audit can read each line, and never in place of
another release. The texts are only stored, and not processed until a person at the hospital asks for it. The
coordinator learns that the texts were accepted, or a coarse reason for a refusal, and nothing about the records.
"""

import json
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from client.approval.entries import find_entry, path_of, read_entry
from client.session import RefusalError
from common.errors import ConfigError, DataError
from common.labelled_files import read_texts
from common.ledger.ledger import Ledger
from common.messages import LARGEST_RELEASE, Reason
from common.system.files import SECRET, write_atomic
from common.system.log_lines import now

MOST_RELEASES = 20
"""Maximum number of releases that are stored, so that a coordinator cannot fill the disk."""
MOST_TEXTS = LONGEST_LINE = 1_000_000
"""Maximum number of texts in a release, and of bytes in a line. More short texts, or more values in one line, could
exhaust the service's memory during the check."""
_COMING = "coming.jsonl"
"""Name of the file of a release while its lines are being checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedRelease:
    """A release that the coordinator sent: its file, the run's name, the time (UTC), and the number of texts."""

    path: Path
    run: str
    received: str
    texts: int


class Releases:
    """The releases of one hospital.

    Args:
        folder: The hospital's private folder.
        ledger: The hospital's ledger, which records what the hospital has answered.
    """

    def __init__(self, folder: Path, ledger: Ledger) -> None:
        self._folder = folder
        self._ledger = ledger

    def keep(self, run: str, plan_digest: bytes, texts: bytes) -> None:
        """Store the texts of a run, JSON Lines with the key `text`, unless the same texts are already stored.

        Raises:
            RefusalError: UNPLANNED if the run and plan were not answered here; DECLINED if they are no longer approved;
                OVER_LIMIT if there are too many bytes or texts, or other texts are stored for the run; FULL if there is
                no room for another release; MALFORMED if the audit cannot read the texts.
        """
        self._check_answered(run, plan_digest)
        size, lines = len(texts), texts.count(b"\n")
        if size > LARGEST_RELEASE or lines > MOST_TEXTS or max(map(len, BytesIO(texts)), default=0) > LONGEST_LINE:
            limit = f"at most {LARGEST_RELEASE} bytes in {MOST_TEXTS} lines, each of at most {LONGEST_LINE}"
            raise RefusalError(Reason.OVER_LIMIT, "release", expected=limit, got=f"{size} in {lines}")
        folder = self._folder / "releases"
        folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / path_of(self._folder, run, plan_digest.hex()).with_suffix(".jsonl").name
        note = path.with_suffix(".json")
        if path.exists() and note.exists():
            if path.read_bytes() != texts:
                raise RefusalError(Reason.OVER_LIMIT, "release", expected="the texts that came before", got="others")
            return
        if not note.exists() and len(list(folder.glob("*.json"))) >= MOST_RELEASES:
            what = f"{MOST_RELEASES} releases are kept, and no more can be"
            raise RefusalError(Reason.FULL, what, do=f"Move old ones out of {folder}")
        about = {"run": run, "received": now(), "texts": _stored(texts, path, by_way_of=folder / _COMING)}
        write_atomic(note, json.dumps(about).encode(), mode=SECRET)

    def _check_answered(self, run: str, plan_digest: bytes) -> None:
        """Raise a RefusalError if this hospital has not answered the run and plan, or no longer approves them."""
        approval = find_entry(self._folder, run, plan_digest.hex())
        answered = any(entry.plan_digest == plan_digest for entry in self._ledger.entries(run))
        if approval is None or not answered:
            raise RefusalError(Reason.UNPLANNED, "release", expected="that of a run and plan that was answered here")
        if approval.decision != "approved":
            do = "To take the texts, approve the plan again: it may then send further queries, too"
            raise RefusalError(Reason.DECLINED, f"the plan of this release is {approval.decision}", do=do)


def releases(folder: Path) -> list[ReceivedRelease]:
    """Return the releases in a hospital's private folder for which the texts are still there, newest first.

    Raises:
        DataError: A file is damaged.
    """
    notes = (folder / "releases").glob("*.json")
    kept = [read_entry(note, ReceivedRelease, path=note.with_suffix(".jsonl")) for note in notes]
    return sorted((one for one in kept if one.path.exists()), key=lambda one: (one.received, one.run), reverse=True)


def release(folder: Path, name: str) -> ReceivedRelease:
    """Return the release with this file name, without its ending, or else the newest release of the run of this name.

    A coordinator may name a run like another run's file, so the file takes precedence.

    Raises:
        ConfigError: There is no such release.
    """
    kept = releases(folder)
    named = [one for one in kept if one.path.stem == name] or [one for one in kept if one.run == name]
    if not named:
        do = f"Name one of {', '.join(one.run for one in kept)}" if kept else "Ask the coordinator to send its texts"
        raise ConfigError("no such release was sent here", got=repr(name), do=do)
    return named[0]


def _stored(texts: bytes, path: Path, *, by_way_of: Path) -> int:
    """Check and store the texts; return the number of texts."""
    try:
        write_atomic(by_way_of, texts, mode=SECRET)
        number = len(read_texts(by_way_of))
        by_way_of.replace(path)
    except DataError as error:
        lines = "JSON Lines with a text in each"
        raise RefusalError(Reason.MALFORMED, "release", expected=lines, got=error.what) from error
    finally:
        by_way_of.unlink(missing_ok=True)
    return number
