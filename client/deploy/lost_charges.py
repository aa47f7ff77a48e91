"""What a ledger lacks that is older than the noted head, damaged or missing, found from files beside it.

    the note of the head    how often each run was charged (`client/noted_head.py`)
    audit.jsonl             which questions were answered
    runs/                   the plans, which say what each answer cost

If a run was charged, or answered, more often than the ledger says, its whole plan is charged: nobody knows which of the
answers were given, and a plan's own releases hold at every delta. Without a note this goes for each plan that was
approved or charged. So the sum is never below the truth, if `corrupt` in client.yaml is as it was, but for what these
files do not know: a run without its plan, or a plan that was approved after they were copied. That is left to a person.
"""

import math
from dataclasses import dataclass

from client.approval.entries import approvals, find_entry
from client.deploy.audit_reading import answered_questions, uncharged_questions
from client.deploy.settings import HospitalSettings
from common.ledger.ledger import Ledger
from common.ledger.log import Entry
from common.privacy.accountant import ReleasedAnswers
from common.privacy.sensitivity import Sensitivity
from common.system.log_lines import now

LOST = "lost with another ledger"
"""Beginning of the name of a charge of which epsilon alone is known; epsilon and the date follow."""
_ONE = Sensitivity(l1=1, l2_squared=1, touched=1)
UNKNOWN = bytes(32)
"""Digest of the question of an answer that is charged by its plan, or by a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostCharges:
    """The charges that a ledger lacks.

    Attributes:
        entries: The charges whose plans are known here.
        unknown: Runs with charges that the ledger lacks, and whose plan is not known here.
        certain: Whether the note says how often each run was charged, so that no other run can lack a charge.
        runs: All runs that this hospital was asked about, as far as these files say.
    """

    entries: tuple[Entry, ...]
    unknown: tuple[str, ...]
    certain: bool
    runs: frozenset[str]


def find_lost_charges(settings: HospitalSettings, ledger: Ledger | None) -> LostCharges:
    """Return what a ledger lacks, which is None if there is none or it is damaged.

    Raises:
        DataError: A file of the hospital's runs is damaged.
        ConfigError: The folder of the note is missing.
        OSError: A file cannot be read.
    """
    noted, answered = settings.noted_head.runs(), answered_questions(settings.audit_log)
    known, charged = approvals(settings.private), ledger.runs() if ledger else {}
    plans: dict[str, set[str]] = {}
    for run, total in (noted or {}).items():
        if total.charges > (charged[run].charges if run in charged else 0):
            plans.setdefault(run, set()).add(total.plan_digest)
    for run, digest in uncharged_questions(answered, ledger):
        plans.setdefault(run, set()).add(digest)
    if noted is None:
        for approval in known:
            if approval.data or approval.decision == "approved" or approval.run in charged:
                plans.setdefault(approval.run, set()).add(approval.plan_digest)
    by_run = {run: _charges(run, digests, settings, ledger) for run, digests in sorted(plans.items())}
    return LostCharges(
        entries=tuple(entry for entries in by_run.values() for entry in entries or ()),
        unknown=tuple(run for run, entries in by_run.items() if entries is None),
        certain=noted is not None,
        runs=frozenset({approval.run for approval in known} | {run for run, _ in answered} | set(noted or ())),
    )


def charge_of(epsilon: float, *, run: str = "") -> Entry:
    """Return the charge, to every record, of an epsilon above 0 of which nothing else is known, as pure epsilon.

    `run` is its name in the ledger that had it; a new one is named by its epsilon and the date.
    """
    return Entry(
        run=run or f"{LOST}, epsilon {epsilon!r}, {now()}",
        index=0,
        plan_digest=UNKNOWN,
        query_digest=UNKNOWN,
        release=ReleasedAnswers(mechanism="pure", sensitivity=_ONE, scale=1 / epsilon),
        charged=now(),
    )


def _charges(run: str, digests: set[str], settings: HospitalSettings, ledger: Ledger | None) -> list[Entry] | None:
    """Return what a run's plan costs beyond what this ledger has of it; None if that is not known here."""
    has = ledger.entries(run) if ledger else ()
    if digests == {UNKNOWN.hex()}:  # no plan's digest: a charge that `charge_of` made
        epsilon = _epsilon_in(run)
        return None if epsilon is None else [] if has else [charge_of(epsilon, run=run)]
    digests = digests | {entry.plan_digest.hex() for entry in has}
    approval = find_entry(settings.private, run, min(digests)) if len(digests) == 1 else None
    plan = approval.read_plan() if approval else None
    if plan is None:
        return None
    shares = settings.party.limits.unknown_shares(plan)
    missing = sorted(set(range(plan.total_queries)) - {entry.index for entry in has})
    return [
        Entry(
            run=run,
            index=index,
            plan_digest=plan.digest(),
            query_digest=UNKNOWN,
            release=plan.answer_release(index, shares),
            charged=now(),
        )
        for index in missing
    ]


def _epsilon_in(run: str) -> float | None:
    """Return the epsilon in the name of a charge of `charge_of`; None if an earlier version wrote the name without."""
    number = run.removeprefix(f"{LOST}, epsilon ").partition(",")[0]
    try:
        epsilon = float(number)
    except ValueError:
        return None
    return epsilon if epsilon > 0 and not math.isnan(epsilon) else None
