"""The questions that a hospital has answered, by its audit log: a ledger that was restored may lack them.

The current `audit.jsonl` alone is read. Once it has been moved away, earlier answers are known to the ledger alone.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from pathlib import Path

from common.ledger.ledger import Ledger

Questions = Mapping[tuple[str, str], Mapping[int, str]]
"""Time of the first answer, ISO 8601 in UTC, keyed by index; all keyed by run and hex digest of its plan."""


def answered_questions(audit_log: Path) -> Questions:
    """Return the questions that the audit log says were answered; damaged lines are omitted.

    Raises:
        OSError: The log cannot be read.
    """
    if not audit_log.exists():
        return {}
    status = audit_log.stat()
    return _read(audit_log, (status.st_ino, status.st_size, status.st_mtime_ns))


def uncharged_questions(answered: Questions, ledger: Ledger | None) -> Mapping[tuple[str, str], AbstractSet[int]]:
    """Return the indices of answers that this ledger has not charged: another ledger did, and was lost."""
    charged = defaultdict(set)
    for entry in ledger.entries() if ledger else ():
        charged[entry.run, entry.plan_digest.hex()].add(entry.index)
    lacking = {place: indices.keys() - charged[place] for place, indices in answered.items()}
    return {place: indices for place, indices in lacking.items() if indices}


@lru_cache(maxsize=1)
def _read(audit_log: Path, _version: tuple[int, int, int]) -> Questions:
    """Return the questions, cached until the file changes, since a page shows them several times."""
    questions: dict[tuple[str, str], dict[int, str]] = defaultdict(dict)
    with audit_log.open("rb") as lines:
        for line in lines:
            if b'"Ask"' not in line:  # most lines need not be parsed
                continue
            try:
                entry = json.loads(line)
                if (entry.get("request"), entry.get("decision")) == ("Ask", "answered"):
                    times = questions[str(entry["run"]), str(entry["plan"])]
                    times.setdefault(int(entry["query"]), str(entry["when"]))
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
    return dict(questions)
