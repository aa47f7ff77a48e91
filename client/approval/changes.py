"""Differences between a plan and the last approved plan of the same name, which are all that a person has to read.

If the same plan, with the same digest, was approved under another name, there are no differences.

The coordinator chooses a run's name and appends random letters and digits, which are ignored here: "pilot-1a2b3c4d" and
"pilot-99887766" count as the same name. Like the purpose, the name is the coordinator's claim and is not verified.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from client.approval.entries import PlanApproval
from client.approval.questions import question_in_words
from common.domain import is_one_population
from common.plan.plan import Plan
from common.plan.planned import PlannedQuery

NAMES = {
    "method": "method",
    "encoder": "digest of the encoder",
    "parties": "number of hospitals",
    "max_dropouts": "hospitals that may be missing from a sum",
    "colluders": "hospitals that may reveal their noise",
    "threshold": "hospitals that can lift a mask together",
    "secure": "masks",
    "degree": "hospitals with which one exchanges masks",
    "corrupt": "hospitals that may help the coordinator",
    "roster": "digest of the roster",
    "epsilon": "epsilon of all that the run releases",
    "delta": "delta",
    "unit": "what is protected",
    "max_attempts": "attempts at each answer",
    "calibration": "calibration of the noise",
    "max_records_per_party": "largest number of records of a hospital",
    "purpose": "purpose",
    "recipient": "recipient",
    "contact": "contact",
    "retention": "retention",
    "models": "language models",
    "forecast": "forecast",
}
"""Readable names of the fields of a plan that are compared as a whole, keyed by field. Labels and queries are compared
one by one."""


def approved_before(approval: PlanApproval, known: Sequence[PlanApproval]) -> PlanApproval | None:
    """Return the last approved run of the same plan or else of the same name; None if it is missing or unreadable."""
    others = [other for other in known if other.decision == "approved" and other.run != approval.run]
    same = [other for other in others if other.plan_digest == approval.plan_digest]
    named = [other for other in others if _name_of_run(other.run) == _name_of_run(approval.run)]
    last = max(same or named, key=lambda other: other.decided or other.first_seen, default=None)
    return last if last and last.read_plan() else None


def plan_changes(before: Plan, after: Plan) -> Iterator[str]:
    """Yield each difference as a clause; none exactly if the plans have the same digest."""
    for field, name in NAMES.items():
        old, new = getattr(before, field), getattr(after, field)
        if old != new:
            yield f"{name}: {_before_and_now(old, new)}"
    yield from _label_changes(before, after)
    yield from _query_changes(before, after)


def _label_changes(before: Plan, after: Plan) -> Iterator[str]:
    if before.labels == after.labels:
        return
    if is_one_population(after.labels):
        yield "no labels any more: all records take part, as one population"
        return
    if is_one_population(before.labels):
        yield f"labels, where there were none: {', '.join(after.labels)}"
        return
    gone = [label for label in before.labels if label not in after.labels]
    new = [label for label in after.labels if label not in before.labels]
    if gone:
        yield f"labels no longer asked for: {', '.join(gone)}"
    if new:
        yield f"new labels: {', '.join(new)}"
    if not gone and not new:
        yield "labels: in another order"


def _query_changes(before: Plan, after: Plan) -> Iterator[str]:
    old = {query.name: query for query in before.queries}
    new = {query.name: query for query in after.queries}
    for name in sorted(old.keys() - new.keys()):
        yield f"query {name} is no longer asked"
    for name, query in new.items():
        if name not in old:
            yield f"query {name} is new: it asks {question_in_words(query.spec)}"
        elif query != old[name]:
            yield f"query {name}: {_fields_changed(old[name], query)}"
    if [name for name in old if name in new] != [name for name in new if name in old]:
        yield "queries: in another order"


def _fields_changed(before: PlannedQuery, after: PlannedQuery) -> str:
    """Return the differences between two queries of the same name, each with the name of the plan's field."""
    if before.spec.kind != after.spec.kind:
        return f"{before.spec.kind} before, {after.spec.kind} now"
    old, new = (asdict(query.spec) | asdict(query) | {"spec": None} for query in (before, after))
    return ", ".join(
        f"{name.replace('_', ' ')} {_before_and_now(old[name], new[name])}" for name in new if old[name] != new[name]
    )


def _name_of_run(run: str) -> str:
    return run.rpartition("-")[0] or run


def _before_and_now(old: object, new: object) -> str:
    if isinstance(old, float) and isinstance(new, float) and f"{old:.4g}" != f"{new:.4g}":
        return f"{old:.4g} before, {new:.4g} now"
    return f"{_shown(old)} before, {_shown(new)} now"


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) or "none"
