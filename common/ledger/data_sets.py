"""The records to which answers were charged, stored as digests that reveal nothing without the ledger's key.

    digest of a record's k-th occurrence = HMAC-SHA256(key, "record" || k || record), its first 16 bytes
    name of a data set                   = HMAC-SHA256(key, "data set" || all digests, sorted)

So two data sets share a record if and only if they share a digest, and a name identifies a multiset of records. This
holds except for collisions: the probability that any two of 2^40 digests are equal is below 2^-48, and nobody can
search for collisions without the key. The key is created with the ledger and never leaves it: if the digests had no
key, anybody who has a record could test whether it is in a data set.

The digests remain after a record is deleted elsewhere: if the record is added again, its past charges still count. But
a record is identified by its bytes: a record in which a single comma was edited is a different record, and a file in
which all records were edited is a new data set.
"""

import hmac
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from sqlite3 import Connection

from common.errors import DamagedLedgerError, InternalError
from common.ledger.chain import RESTORE

DIGEST_BYTES = 16


def record_digests(key: bytes, records: Iterable[bytes]) -> list[bytes]:
    """Return the digests of all records, 16 bytes each, sorted."""
    seen: Counter[bytes] = Counter()
    digests = []
    for record in records:
        occurrence = seen[record].to_bytes(8, "big")
        seen[record] += 1
        digests.append(hmac.digest(key, b"record" + occurrence + record, "sha256")[:DIGEST_BYTES])
    return sorted(digests)


def data_set_name(key: bytes, digests: Iterable[bytes]) -> str:
    """Return the name, 64 hex digits, of the data set whose records have these sorted digests."""
    return hmac.digest(key, b"data set" + b"".join(digests), "sha256").hex()


def store(database: Connection, name: str, digests: Iterable[bytes]) -> None:
    """Store the digests of a data set's records, unless they are stored already."""
    if _number(database, name) is None:
        number = database.execute("INSERT INTO data_sets (name) VALUES (?)", (name,)).lastrowid
        database.executemany("INSERT INTO records VALUES (?, ?)", ((digest, number) for digest in digests))


def overlapping(database: Connection, name: str) -> frozenset[str]:
    """Return the names of all data sets that share a record with this one, including its own name."""
    number = _number(database, name)
    if number is None:
        raise InternalError("a data set that was never named", got=name[:8])
    rows = database.execute(
        "SELECT name FROM data_sets WHERE number IN (SELECT other.data_set FROM records AS own"
        " JOIN records AS other ON other.digest = own.digest WHERE own.data_set = ?)",
        (number,),
    )
    return frozenset({name, *(other for (other,) in rows)})


def check_data_sets(database: Connection, key: bytes, *, where: Path) -> None:
    """Check that the name of each data set matches its records.

    Raises:
        DamagedLedgerError: The name of a data set does not match its records; the check ends at the first such one.
    """
    for number, name in database.execute("SELECT number, name FROM data_sets"):
        rows = database.execute("SELECT digest FROM records WHERE data_set = ? ORDER BY digest", (number,))
        if data_set_name(key, (digest for (digest,) in rows)) != name:
            raise DamagedLedgerError(
                "the records of a data set were edited", where=f"{where}, data set {name[:8]}", do=RESTORE
            )


def _number(database: Connection, name: str) -> int | None:
    row = database.execute("SELECT number FROM data_sets WHERE name = ?", (name,)).fetchone()
    return None if row is None else int(row[0])
