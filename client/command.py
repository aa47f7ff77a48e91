"""`caucus-party`: what a party does from the command line.

caucus-party ledger show FILE [--delta D] [--json]     what was answered, run by run, and what it costs together
caucus-party ledger verify FILE [--head HEX]           whether the file is whole; prints its head, to be noted elsewhere
caucus-party ledger export FILE                        its events as JSON Lines; no answers, keys or record digests
"""

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from common.errors import CaucusError
from common.privacy.accountant import epsilon
from common.privacy.ledger import Ledger
from common.privacy.ledger_log import Entry

_DELTA = 1e-5
_SHORT = 8
"""Hex digits of a data set's name that tell it from others at a glance."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code: 0 done, 1 the reason in one line on standard error, 2 wrong usage."""
    chosen = _parser().parse_args(arguments)
    try:
        # Read-only: looking at a ledger must never make one.
        for line in chosen.lines(Ledger(chosen.file, read_only=True), chosen):
            print(line)  # noqa: T201 the command's product
    except CaucusError as error:
        print(f"caucus-party: {' '.join(str(error).split())}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="caucus-party", description="What a party does from the command line.")
    topics = parser.add_subparsers(metavar="COMMAND", required=True)
    ledger = topics.add_parser(
        "ledger",
        help="look at a ledger of answers and check it",
        description="Look at a ledger of answers and check it; the file is never changed.",
        epilog="example: caucus-party ledger show ledger.db",
    )
    commands = ledger.add_subparsers(metavar="COMMAND", required=True)

    show = commands.add_parser(
        "show",
        help="what was answered, run by run, and epsilon",
        description="Print, for each run and for all together: data sets, answers charged and closed, their noise, "
        "when, and epsilon of all that was charged.",
        epilog="example: caucus-party ledger show ledger.db --delta 1e-6",
    )
    show.add_argument("--delta", type=float, default=_DELTA, help="delta that epsilon is given at (%(default)g)")
    show.add_argument("--json", action="store_true", help="print JSON")
    show.set_defaults(lines=_show)

    verify = commands.add_parser(
        "verify",
        help="check that nothing was edited, lost or damaged",
        description="Check the whole file; print how many events it has and its head. Note the head elsewhere: "
        "only against it does a file show that was cut off or written anew.",
        epilog="example: caucus-party ledger verify ledger.db --head HEX_OF_LAST_TIME",
    )
    verify.add_argument("--head", metavar="HEX", help="a head that was noted before")
    verify.set_defaults(lines=_verify)

    export = commands.add_parser(
        "export",
        help="print all events as JSON Lines",
        description="Print all events, one JSON object a line: never answers, keys or digests of records.",
        epilog="example: caucus-party ledger export ledger.db > events.jsonl",
    )
    export.set_defaults(lines=_export)
    for command in (show, verify, export):
        command.add_argument("file", metavar="FILE", type=Path, help="the ledger, such as ledger.db")
    return parser


def _verify(ledger: Ledger, chosen: argparse.Namespace) -> Iterator[str]:
    head = ledger.verify(chosen.head)
    yield f"{head.events} events, head {head.chain}"


def _export(ledger: Ledger, _: argparse.Namespace) -> Iterator[str]:
    for event in ledger.events():
        yield json.dumps(
            {
                "sequence": event.sequence,
                "run": event.run,
                "position": event.position,
                "kind": event.kind,
                "body": json.loads(event.body),
                "chain": event.chain.hex(),
            }
        )


def _show(ledger: Ledger, chosen: argparse.Namespace) -> Iterator[str]:
    entries = ledger.entries()
    runs: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: entry.charged):
        runs.setdefault(entry.run, []).append(entry)
    rows = [{"run": run, **_facts(charged, chosen.delta)} for run, charged in runs.items()]
    total = _facts(entries, chosen.delta)
    if chosen.json:
        yield json.dumps({"delta": chosen.delta, "runs": rows, "all": total}, indent=2)
    else:
        yield from _table([*rows, {"run": "all", **total}], chosen.delta)


def _facts(entries: Sequence[Entry], delta: float) -> dict[str, Any]:
    """What there is to say of these entries; an infinite epsilon is null."""
    spent = epsilon((entry.cost for entry in entries), delta)
    times = sorted(entry.charged for entry in entries)
    return {
        "data_sets": sorted({entry.data_set for entry in entries if entry.data_set}),
        "charged": len(entries),
        "closed": sum(entry.committed for entry in entries),
        "noise": dict(Counter(entry.release.mechanism if entry.release.scale else "none" for entry in entries)),
        "first": times[0] if times else None,
        "last": times[-1] if times else None,
        "epsilon": None if math.isinf(spent) else spent,
    }


def _table(rows: Iterable[dict[str, Any]], delta: float) -> Iterator[str]:
    cells = [("run", "data sets", "charged", "closed", "noise", "first", "last", f"epsilon at delta {delta:g}")]
    cells += [
        (
            row["run"],
            " ".join(name[:_SHORT] for name in row["data_sets"]) or "-",
            str(row["charged"]),
            str(row["closed"]),
            " ".join(f"{count} {mechanism}" for mechanism, count in row["noise"].items()) or "-",
            row["first"] or "-",
            row["last"] or "-",
            "infinite" if row["epsilon"] is None else f"{math.ceil(row['epsilon'] * 1e4) / 1e4:.4f}",
        )
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


if __name__ == "__main__":
    sys.exit(main())
