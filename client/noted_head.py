"""The head of the ledger, noted outside the ledger to detect an older copy, which would restore budget already spent.

The note also says which runs were charged, how often and for which plan: `caucus-party ledger accept` needs this if the
ledger is lost.

    FOLDER/private/ledger.head    the default: reveals that `ledger.db` alone was restored
    ledger_head: PATH             in client.yaml, on another disk: also reveals that the whole folder was restored

    64 hexadecimal digits         the head
    2 runs                        how many lines follow; an earlier version's note has the head alone
    7 DIGEST pilot-1a2b3c4d       for a run the number of charges, the plan's digest ("-" without a charge) and the name
    1 DIGEST second-5e6f7a8b

The note is written after the ledger's own commit, so it is never ahead of the ledger, and before an answer leaves, so
it covers everything that was answered. If the note cannot be written, the answer is refused. It is also refused if an
older copy has replaced the ledger while the service was running. After a crash between the commit and the note, the
note is behind the ledger but still accepted, since the ledger contains the noted head.

If ledger and note are both missing, the ledger is new only if the service never started here: at its first start the
service makes the folder `runs/` beside the ledger, which is never removed.
"""

import re
from pathlib import Path

from common.errors import ConfigError, IncompleteLedgerError
from common.ledger.ledger import ChargedRun, Ledger
from common.system.files import SECRET, write_atomic

_HEX = re.compile("[0-9a-f]{64}")
_RUN = re.compile("([0-9]+) (-|[0-9a-f]{64}) (.+)")
_DO = "Restore what is missing; if it is lost, caucus-party ledger accept charges what was spent since."


class NotedHead:
    """The file with this path, outside the ledger, that notes the head of one ledger.

    Raises:
        ConfigError: In each method that reads the note: its folder is missing, as that of a disk that is not mounted.
        OSError: In these: the note cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._written: str | None = None

    def unused(self, ledger: Path) -> bool:
        """Return whether the service never started with this ledger: there is neither ledger nor note nor any run.

        Raises:
            IncompleteLedgerError: The note is invalid.
        """
        return self.read() is None and is_missing(ledger) and not _started(ledger)

    def opened(self, ledger: Path, *, read_only: bool = False) -> Ledger:
        """Return the ledger if it contains the noted head; unless `read_only`, also update the note.

        Raises:
            IncompleteLedgerError: The ledger is missing, does not contain the head, or has events although there is no
                note; or the note is invalid.
            LedgerError: The ledger was edited, is damaged, or cannot be read or written.
            OSError: The note cannot be written.
        """
        noted = self.read()
        if is_missing(ledger) and (noted is not None or _started(ledger)):
            expected = f"one with head {noted}" if noted else "that of the runs in the folder beside it"
            raise IncompleteLedgerError("the ledger is missing", expected=expected, where=ledger, do=_DO)
        opened = Ledger(ledger, read_only=read_only, head=noted)
        if noted is None and (opened.head().events or _started(ledger)):
            raise IncompleteLedgerError(
                "no head of this ledger was noted", expected="a note", got="none", where=self.path, do=_DO
            )
        if not read_only:
            self.write(opened)
        return opened

    def opened_at_start(self, ledger: Path, *, read_only: bool = False) -> Ledger | None:
        """Open the ledger as the party service does at its start, with the errors of `opened`; None if it never did."""
        return None if self.unused(ledger) else self.opened(ledger, read_only=read_only)

    def inspected(self, ledger: Path) -> tuple[Ledger | None, str]:
        """Return the ledger to read, checked from end to end, and why the party service does not start with it.

        The ledger is None if the file does not exist; the problem is empty if the service starts.

        Raises:
            LedgerError: The ledger was edited, is damaged or cannot be read.
        """
        try:
            return self.opened_at_start(ledger, read_only=True), ""
        except IncompleteLedgerError as error:
            return None if is_missing(ledger) else Ledger(ledger, read_only=True), str(error)

    def read(self) -> str | None:
        """Return the noted head; None if there is no note.

        Raises:
            IncompleteLedgerError: The file is not a note, so that nothing shows what the ledger must contain.
        """
        if not self.path.parent.is_dir():
            raise ConfigError("ledger_head", expected="a file in an existing folder", got="none", where=self.path)
        if not self.path.exists():
            return None
        noted = self._lines()[0].strip()
        if not _HEX.fullmatch(noted):
            raise IncompleteLedgerError(
                "noted head", expected="64 hexadecimal digits", got="another thing", where=self.path, do=_DO
            )
        return noted

    def runs(self) -> dict[str, ChargedRun] | None:
        """Return what was charged in each run by the ledger whose head is noted; None if the note does not say it."""
        try:
            if self.read() is None:
                return None
        except IncompleteLedgerError:
            return None
        _, *lines = self._lines()
        parts = [match.groups() for line in lines if (match := _RUN.fullmatch(line))]
        runs = {run: ChargedRun(int(number), digest.removeprefix("-")) for number, digest, run in parts}
        return runs if lines[:1] == [f"{len(runs)} runs"] else None

    def _lines(self) -> list[str]:
        """Return the note's lines; names of runs have no line breaks, since they can be printed."""
        return self.path.read_text(encoding="utf-8", errors="replace").removesuffix("\n").split("\n")

    def check(self, ledger: Ledger) -> None:
        """Raise a LedgerError, before any charge, if an older copy has replaced the ledger since the last note."""
        ledger.head(after=self._written)

    def write(self, ledger: Ledger) -> None:
        """Note the ledger's current head, which must already be on disk.

        Raises:
            LedgerError: An older copy has replaced the ledger meanwhile; the note is unchanged.
            OSError: The note cannot be written; the previous one is intact.
        """
        head = ledger.head(after=self._written).chain
        if head != self._written:
            charged = sorted(ledger.runs().items())
            runs = [f"{total.charges} {total.plan_digest or '-'} {run}" for run, total in charged]
            write_atomic(self.path, "\n".join([head, f"{len(runs)} runs", *runs, ""]).encode(), mode=SECRET)
            self._written = head


def is_missing(ledger: Path) -> bool:
    """Return whether there is no ledger; an empty file is none, though SQLite takes it for a new database."""
    return not ledger.exists() or ledger.stat().st_size == 0


def _started(ledger: Path) -> bool:
    """Return whether the party service has ever started with this ledger's folder."""
    return (ledger.parent / "runs").exists()
