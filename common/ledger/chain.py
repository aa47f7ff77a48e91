"""The hash chain of a ledger, which seals each event together with all earlier events.

    chain_0 = a keyed digest that belongs to this ledger
    chain_n = SHA-256(chain_{n-1} || canonical JSON of [n, run, position, kind, body])

Canonical JSON has sorted keys, no spaces and only ASCII, so that anybody can compute the chain of an exported ledger.
An event that was changed, removed, moved or inserted breaks the chain at its position. The chain alone does not reveal
two attacks: anybody who can write to the file can compute a whole new chain (a key kept in the same file would not
prevent this), and a chain whose tail was cut off is still valid. Comparison with a head that was noted elsewhere
reveals both attacks.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from common.errors import DamagedLedgerError

RESTORE = (
    "Restore a backup that holds all that was answered since. If a hospital has none, caucus-party ledger accept sets "
    "this file aside and charges what it held."
)
"""Advice for a damaged ledger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One sealed event.

    Attributes:
        sequence: The event's number in the ledger, from 1.
        run: Name of the run.
        position: Index of the answer in the run.
        kind: Kind of the event; see `common/ledger/log.py`.
        body: Details, in canonical JSON.
        chain: Digest over this event and all before it, 32 bytes.
    """

    sequence: int
    run: str
    position: int
    kind: str
    body: str
    chain: bytes


EventRow = tuple[int, str, int, str, str, bytes]
"""An event as stored in the file, before it is checked."""


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(value: object) -> str:
    """Return the canonical JSON text of a value."""
    return _ENCODER.encode(value)


def seal(previous: bytes, *, sequence: int, run: str, position: int, kind: str, body: str) -> Event:
    """Return the event that follows the event whose chain digest is `previous`."""
    place = canonical([sequence, run, position, kind]).removesuffix("]")
    chain = hashlib.sha256(previous + f"{place},{body}]".encode()).digest()
    return Event(sequence=sequence, run=run, position=position, kind=kind, body=body, chain=chain)


def follow(start: bytes, rows: Iterable[EventRow], *, where: object) -> Iterator[Event]:
    """Yield the events of these rows in order, one at a time, since a long ledger has a hundred thousand events.

    Raises:
        DamagedLedgerError: A row does not continue the chain; the message names the file and the sequence number of the
            first such row.
    """
    head = start
    for number, (sequence, run, position, kind, body, chain) in enumerate(rows, start=1):
        try:
            event = seal(head, sequence=number, run=run, position=position, kind=kind, body=body)
        except TypeError as error:
            raise broken_ledger_error(f"{where}, event {number}") from error
        if sequence != number or event.chain != chain:
            raise broken_ledger_error(f"{where}, event {number}")
        yield event
        head = chain


def broken_ledger_error(where: str) -> DamagedLedgerError:
    """Return the error for content that the ledger cannot have written."""
    return DamagedLedgerError(
        "the ledger was edited or is damaged",
        expected="what was written",
        got="another thing, or nothing",
        where=where,
        do=RESTORE,
    )
