"""`caucus-party ledger accept`: going on after a loss, without giving spent budget back or answering an old run again.

1. Find what the ledger lacks (`lost_charges.py`), and ask for the rest: `--lost`.
2. Set a damaged ledger aside.
3. In one transaction: charge all of this, close every answer and end every run that this hospital was asked about.
   Nobody knows which answers another ledger gave in these runs, or which sums it opened, and two sums of one question
   could be subtracted. The ledger stores that the runs ended, so that nobody reopens one.
   Before this is committed, the audit log gets a line.
4. Note the head. Until then the service refuses the ledger, so that an interrupted command can be repeated. If
   `ledger show` already has the charge of `--lost`, repeat it with 0: typed again, the number is charged again.

A ledger may be whole, and yet lack what a former folder over the same records spent (`known_records.py`). Then only
`--lost` is charged, and the runs of this ledger go on.

Not covered: if the note of the head is restored together with the ledger, nothing shows that anything is lost. If the
note is lost, a run that is in no restored file is not known, and could be asked again. New keys (`caucus-party rotate`)
make its plan refused, if it is one that withstands a malicious coordinator.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from client.approval.entries import end_all
from client.audit_log import AuditLog, account
from client.deploy import known_records
from client.deploy.lost_charges import LostCharges, charge_of, find_lost_charges
from client.deploy.settings import HospitalSettings
from client.noted_head import NotedHead, is_missing
from common.errors import ConfigError, DamagedLedgerError, IncompleteLedgerError
from common.ledger.ledger import Ledger
from common.ledger.log import Entry
from common.system import locks
from common.system.commands import Commands, add_command, add_folder
from common.system.log_lines import escaped_line, now


def register(topics: Commands) -> None:
    """Add the subcommand `accept` to the command `ledger`."""
    accept = add_command(
        topics,
        "accept",
        _accept,
        summary="go on with an older ledger, and charge what it lacks",
        description="If the newest ledger is lost: charge what the restored ledger lacks, or a new one; close all "
        "answers and end all runs; then note the head, so that the service can start. The note of the head, the audit "
        "log and the plans in private/runs say what it lacks, and each of these plans is charged in full. A damaged "
        "ledger is set aside first, as ledger.db.damaged and the date. With --lost, also charge what a former folder "
        "over the same records spent.",
        example="caucus-party ledger accept hospital",
    )
    add_folder(accept, "caucus-party")
    accept.add_argument(
        "--lost",
        metavar="EPSILON",
        type=float,
        help="what else was spent: max_epsilon of client.yaml for each run whose plan is not known here; 0 if there is "
        "none; inf if nobody knows. It is charged as pure epsilon, so never set lifetime_delta below the plans' delta",
    )


def _accept(chosen: argparse.Namespace) -> Iterator[str]:
    if chosen.lost is not None and not chosen.lost >= 0:
        raise ConfigError("--lost", expected="a number of at least 0", got=chosen.lost)
    settings = HospitalSettings.load(chosen.folder)
    locks.check_free(settings.folder, ("service",), stop=f"caucus-party stop {chosen.folder}")
    former = known_records.former_folders(settings.folder)
    if _is_refused(settings.ledger, settings.noted_head):
        yield from _go_on(settings, chosen.lost, former)
    elif former or settings.noted_head.unused(settings.ledger):
        yield from _charge_former(settings, chosen.lost, former)
    else:
        raise ConfigError("the ledger has its noted head, so nothing is to be accepted", do="Run caucus-party start")
    if chosen.lost:
        yield f"epsilon {chosen.lost:g} is charged to every record, as pure epsilon"
    yield f"the head is noted in {settings.noted_head.path}"
    yield from known_records.settle(settings.folder)


def _is_refused(path: Path, noted_head: NotedHead) -> bool:
    """Return whether the service refuses the ledger because something is lost or damaged, which charges can replace."""
    try:
        noted_head.opened_at_start(path)  # as the service does, which undoes an interrupted write
    except (IncompleteLedgerError, DamagedLedgerError):
        return True
    return False


def _go_on(settings: HospitalSettings, epsilon: float | None, former: Sequence[str]) -> Iterator[str]:
    """Charge all that is lost, and end all runs."""
    path, damage = settings.ledger, ""
    try:
        ledger = None if is_missing(path) else Ledger(path)
    except DamagedLedgerError as error:
        ledger, damage = None, error.problem
    lost = find_lost_charges(settings, ledger)
    if epsilon is None:
        _check_all_known(lost, former)
    if damage:
        yield f"{damage}: set aside as {_set_aside(path)}"
    ledger = ledger or Ledger(path)
    charged, number = Counter(entry.run for entry in lost.entries), _of_number(epsilon, ledger)
    ledger.accept([*lost.entries, *number], lost.runs, note=_noting(settings, charged, epsilon if number else None))
    end_all(settings.private)
    settings.noted_head.write(ledger)
    for run, charges in charged.items():
        yield f"charged by its plan: {charges} answer{'s' * (charges != 1)} of run {escaped_line(run)}"
    yield "no run that began before is answered again: ask the coordinator to begin new ones"
    if not lost.certain:
        yield "no note said which runs were charged: caucus-party rotate keeps one that is not known here from going on"


def _charge_former(settings: HospitalSettings, epsilon: float | None, former: Sequence[str]) -> Iterator[str]:
    """Charge what a former folder spent, in a ledger that lacks nothing else."""
    if epsilon is None:
        raise _number_wanted(f"in {' and '.join(former) or 'a former folder'} over the same records")
    ledger = Ledger(settings.ledger)
    ledger.accept(_of_number(epsilon, ledger), going_on=True, note=_noting(settings, {}, epsilon))
    settings.noted_head.write(ledger)
    yield "the runs of this folder go on"


def _noting(settings: HospitalSettings, charged: Mapping[str, int], lost: float | None) -> Callable[[str, str], None]:
    """Return the function that puts what is accepted on record, given the heads before and after."""
    return partial(AuditLog(settings.private).note_accepted, by=account(), charged=charged, lost=lost or 0)


def _check_all_known(lost: LostCharges, former: Sequence[str]) -> None:
    """Raise a ConfigError if charges are lost whose plans are not known here: a person must say what was spent."""
    if former:
        raise _number_wanted(f"in {' and '.join(former)}, over the same records")
    if not lost.certain:
        where = "by runs that began or were approved after private/runs was copied: no note says which were charged"
        raise _number_wanted(where)
    if lost.unknown:
        raise _number_wanted(
            f"by these runs, whose plans are not known here: {', '.join(map(escaped_line, lost.unknown))}"
        )


def _number_wanted(where: str) -> ConfigError:
    do = "Type max_epsilon of client.yaml for each run, 0 if there was none, inf if nobody knows"
    return ConfigError("--lost", expected=f"epsilon of what was spent {where}", got="no number", do=do)


def _of_number(epsilon: float | None, ledger: Ledger) -> list[Entry]:
    """Return the charge of the number that a person typed, unless this ledger has it, as after an interruption."""
    charge = charge_of(epsilon) if epsilon else None
    return [charge] if charge and charge.run not in ledger.runs() else []


def _set_aside(path: Path) -> Path:
    """Rename a damaged ledger, with its journal, which would otherwise be applied to the next one; return its name."""
    aside = path.with_name(f"{path.name}.damaged-{now().replace(':', '')}")
    for suffix in ("", "-journal"):
        if (part := path.with_name(path.name + suffix)).exists():
            part.rename(f"{aside}{suffix}")
    return aside
