"""`caucus-party ledger`: what was charged in each run, and what it cost.

No entry is ever removed, and only `accept` adds to the file (`accept.py`).
"""

import argparse
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from client.deploy import accept
from client.deploy.left import Left
from client.deploy.settings import HospitalSettings
from client.guard import Limits
from common.errors import ConfigError
from common.ledger.ledger import Ledger
from common.ledger.log import Entry
from common.privacy.accountant import ReleasedAnswers, epsilon
from common.system.commands import Commands, add_command, as_json

_DELTA = 1e-5
Price = Callable[[Iterable[ReleasedAnswers]], float]
"""Function that returns the epsilon of charges."""
_SHORT = 8
"""Number of hex digits of a data set's name that are shown, enough to distinguish data sets at a glance."""


def register(commands: Commands) -> None:
    """Add the `ledger` command and its subcommands."""
    ledger = commands.add_parser(
        "ledger",
        help="look at a ledger of answers and check it",
        description="Look at a ledger of answers and check it, copy it, or go on with an older copy.",
        epilog="example: caucus-party ledger show ledger.db",
    )
    topics = ledger.add_subparsers(metavar="COMMAND", required=True)

    show = add_command(
        topics,
        "show",
        _reading(_show),
        summary="what was charged, run by run, and epsilon",
        description="Print, for each run and for all together: data sets, answers charged and closed, their noise, "
        "when, and epsilon of all that was charged.",
        example="caucus-party ledger show ledger.db --delta 1e-6",
    )
    show.add_argument(
        "--delta",
        type=float,
        help=f"delta at which epsilon is computed; by default lifetime_delta of the folder's client.yaml, also if "
        f"the hospital left; {_DELTA:g} for a file",
    )
    show.add_argument("--json", action="store_true", help="print JSON")

    verify = add_command(
        topics,
        "verify",
        _reading(_verify),
        summary="check that nothing was edited, lost or damaged",
        description="Check the whole file; print how many events it has and its head. Note the head elsewhere: "
        "only a comparison with it reveals a file that was cut off or rewritten.",
        example="caucus-party ledger verify ledger.db --head HEX_OF_LAST_TIME",
    )
    verify.add_argument("--head", metavar="HEX", help="a head that was noted before")

    export = add_command(
        topics,
        "export",
        _reading(lambda ledger, _: export_events(ledger)),
        summary="print all events as JSON Lines",
        description="Print all events, one JSON object a line: never answers, keys or digests of records.",
        example="caucus-party ledger export ledger.db > events.jsonl",
    )

    backup = add_command(
        topics,
        "backup",
        _reading(_backup),
        summary="copy the whole file, also while the service writes it",
        description="Copy the whole file as it is at one moment, and print its head. The copy is as secret as the "
        "ledger: it has the key of the records' digests and the answers of open runs.",
        example="caucus-party ledger backup hospital /backup/ledger-monday.db",
    )
    for command in (show, verify, export, backup):
        command.add_argument("file", metavar="FILE", type=Path, help="ledger.db, or the folder of caucus-party init")
    backup.add_argument("to", metavar="TO", type=Path, help="a new file")

    accept.register(topics)


def _reading(
    lines: Callable[[Ledger, argparse.Namespace], Iterator[str]],
) -> Callable[[argparse.Namespace], Iterator[str]]:
    def read(chosen: argparse.Namespace) -> Iterator[str]:
        file = chosen.file / "private" / "ledger.db" if chosen.file.is_dir() else chosen.file
        if not file.is_file():
            raise ConfigError("there is no ledger", where=file, do="Give a hospital's folder or its ledger.db")
        # Read-only: looking at a ledger must never make one.
        yield from lines(Ledger(file, read_only=True), chosen)

    return read


def _verify(ledger: Ledger, chosen: argparse.Namespace) -> Iterator[str]:
    head = ledger.verify(chosen.head)
    yield f"{head.events} events, head {head.chain}"
    yield from _warnings(_problem(chosen))


def _backup(ledger: Ledger, chosen: argparse.Namespace) -> Iterator[str]:
    head = ledger.copy(chosen.to)
    yield f"{head.events} events, head {head.chain}"


def export_events(ledger: Ledger) -> Iterator[str]:
    """Yield the events as JSON, one per line, without answers, keys or digests of records."""
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
    entries, (price, delta) = ledger.entries(), _price(chosen)
    runs: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: entry.charged):
        runs.setdefault(entry.run, []).append(entry)
    rows = [{"run": run, **_facts(charged, price)} for run, charged in runs.items()]
    total = _facts(entries, price)
    problem = _problem(chosen)
    if chosen.json:
        yield as_json({"delta": delta, "runs": rows, "all": total, "problem": problem})
    else:
        yield from _table([*rows, {"run": "all", **total}], delta)
        yield from _warnings(problem)


def _problem(chosen: argparse.Namespace) -> str:
    """Return why a hospital's party service does not start with its ledger; empty if it does, and for a file."""
    if not (chosen.file / "client.yaml").is_file():
        return ""
    settings = HospitalSettings.load(chosen.file)
    try:
        return settings.noted_head.inspected(settings.ledger)[1]
    except ConfigError as error:  # as if the note's disk is not mounted
        return str(error)


def _warnings(problem: str) -> Iterator[str]:
    if problem:
        yield f"WARNING: more may have been spent, as the party service does not start with this ledger: {problem}"


def _price(chosen: argparse.Namespace) -> tuple[Price, float]:
    """Return how epsilon is counted, and at which delta: for a folder by the limits that the hospital has or had."""
    if left := Left.of(chosen.file):
        limits = Limits(lifetime_delta=left.lifetime_delta)
    elif (chosen.file / "client.yaml").is_file():
        limits = HospitalSettings.load(chosen.file).party.limits
    else:
        delta = _DELTA if chosen.delta is None else chosen.delta
        return lambda costs: epsilon(costs, delta), delta
    if chosen.delta is not None:
        limits = replace(limits, lifetime_delta=chosen.delta)
    return limits.spent, limits.lifetime_delta


def _facts(entries: Sequence[Entry], price: Price) -> dict[str, Any]:
    """Return the facts about these ledger entries."""
    spent = price(entry.cost for entry in entries)
    times = sorted(entry.charged for entry in entries)
    return {
        "data_sets": sorted({entry.data_set for entry in entries if entry.data_set}),
        "charged": len(entries),
        "closed": sum(entry.committed for entry in entries),
        "noise": dict(Counter(entry.release.mechanism if entry.release.scale else "none" for entry in entries)),
        "first": times[0] if times else None,
        "last": times[-1] if times else None,
        "epsilon": spent,
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
            "infinite" if math.isinf(row["epsilon"]) else f"{math.ceil(row['epsilon'] * 1e4) / 1e4:.4f}",
        )
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
