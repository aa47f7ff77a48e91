"""Arguments for a ledger's methods, and changes to its file."""

import contextlib
import sqlite3

from common.privacy.accountant import ReleasedAnswers
from common.privacy.sensitivity import Sensitivity

RELEASE = ReleasedAnswers(
    mechanism="gaussian",
    sensitivity=Sensitivity(l1=6, l2_squared=10, touched=4, shifts=(1, 1, 2, 2)),
    scale=20.0,
    shares=3,
)
ANSWER = bytes(range(64))
KEY = bytes([1]) * 32


def reservation(**changes):
    """Return arguments for `Ledger.reserve`."""
    return {
        "run": "r",
        "index": 0,
        "plan_digest": b"p" * 32,
        "query_digest": b"q" * 32,
        "release": RELEASE,
        **changes,
    }


def edited(path, *statements):
    """Edit a ledger without its triggers, which are restored afterwards."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        triggers = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            database.execute(f'DROP TRIGGER "{name}"')
        for statement in statements:
            database.execute(statement)
        for _, sql in triggers:
            database.execute(sql)
