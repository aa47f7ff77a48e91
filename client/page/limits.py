"""The limits in force, each with what the last plans asked for. They are edited in `client.yaml`, never here."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from itertools import islice
from pathlib import Path

from client.approvals import PlanApproval, approvals
from client.deploy.plan_facts import down, up
from client.deploy.settings import HospitalSettings
from client.deploy.status import opened
from client.guard import Limits
from common.plan.aggregation import log2_breach
from common.plan.guarantee import epsilon_against
from common.plan.plan import Plan
from common.privacy.accountant import Release
from common.queries.votes import VotesSpec
from common.secagg.graph import GRINDING_BITS

LAST = 3
"""Number of the last plans that are compared with the limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A plan, the limits that it is compared with, and what other runs were charged."""

    plan: Plan
    limits: Limits
    charged: tuple[Release, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """What one plan asks for, against one limit.

    Attributes:
        value: The value; empty if the plan has nothing to compare with the limit.
        beyond: Whether the limit refuses it.
        least: The least value that the limit accepts, where the limit itself is no value of this kind; else empty.
    """

    value: str = ""
    beyond: bool = False
    least: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One limit.

    Attributes:
        name: The limit's name in `client.yaml`.
        value: The limit's value in `client.yaml`, or its default if the file does not set it.
        asked: What each of the last plans asks for.
    """

    name: str
    value: str
    asked: tuple[Asked, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """The limits that the party service reads at each opening and question.

    Attributes:
        file: The file in which the limits are edited.
        approval: "manual" or "auto".
        runs: Names of the last runs, newest first, and the decision about each.
        limits: All limits.
        problem: Why the service does not start with the ledger; figures of `asked` may then be too low. Empty if it
            starts.
    """

    file: Path
    approval: str
    runs: tuple[PlanApproval, ...]
    limits: tuple[Limit, ...]
    problem: str


def in_force(settings: HospitalSettings) -> InForce:
    """Return the limits in force, each compared with the last plans.

    Raises:
        LedgerError: The ledger was edited, is damaged or cannot be read.
        ConfigError: The note of its head is invalid.
    """
    readable = (
        (approval, plan) for approval in reversed(approvals(settings.private)) if (plan := approval.read_plan())
    )
    last = tuple(islice(readable, LAST))
    limits = settings.party.limits
    ledger, problem = opened(settings.private / "ledger.db", settings.noted_head)
    requests = [
        Request(plan=plan, limits=limits, charged=ledger.charged("", but=approval.run) if ledger else ())
        for approval, plan in last
    ]
    return InForce(
        file=settings.folder / "client.yaml",
        approval=settings.approval,
        runs=tuple(approval for approval, _ in last),
        limits=tuple(
            Limit(
                name=field.name,
                value=_shown(getattr(limits, field.name)),
                asked=tuple(ASKED[field.name](request) for request in requests),
            )
            for field in fields(Limits)
        ),
        problem=problem,
    )


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(value)
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _max_epsilon(request: Request) -> Asked:
    plan = request.plan
    helpers = request.limits.helpers(plan) if plan.secure else 0
    proven = replace(plan, queries=tuple(query for query in plan.queries if not query.unproven))
    counted = epsilon_against(proven, helpers)  # as `Limits.check` does: what has no proof is a limit of its own
    if len(proven.queries) == len(plan.queries):
        counted = max(counted, plan.epsilon)
    return Asked(up(max(plan.epsilon, epsilon_against(plan, helpers))), counted > request.limits.max_epsilon)


def _max_delta(request: Request) -> Asked:
    return Asked(f"{request.plan.delta:g}", request.plan.delta > request.limits.max_delta)


def _lifetime_epsilon(request: Request) -> Asked:
    plan, limits = request.plan, request.limits
    spent = limits.spent((*request.charged, *plan.releases(limits.unknown_shares(plan))))
    return Asked(up(spent), limits.lifetime_epsilon is not None and spent > limits.lifetime_epsilon)


def _queries(request: Request) -> Asked:
    kinds = dict.fromkeys(query.spec.kind for query in request.plan.queries)
    return Asked(", ".join(kinds), not kinds.keys() <= set(request.limits.queries))


def _max_top(request: Request) -> Asked:
    tops = [query.spec.top for query in request.plan.queries if isinstance(query.spec, VotesSpec)]
    return Asked(str(max(tops)), max(tops) > request.limits.max_top) if tops else Asked()


def _min_survivors(request: Request) -> Asked:
    survivors = request.plan.survivors if request.plan.secure else 1
    return Asked(str(survivors), survivors < request.limits.min_survivors)


def _unit(request: Request) -> Asked:
    return Asked(request.plan.unit, request.limits.unit == "user" != request.plan.unit)


def _min_unit_records(request: Request) -> Asked:
    records = [query.spec.max_records for query in request.plan.queries]
    return Asked(str(min(records)), min(records) < request.limits.min_unit_records) if records else Asked()


def _malicious_coordinator(request: Request) -> Asked:
    malicious = request.plan.malicious
    return Asked(_shown(malicious), request.limits.malicious_coordinator and not malicious)


def _corrupt(request: Request) -> Asked:
    plan, least = request.plan, request.limits.coalition(request.plan)
    if not plan.secure:
        return Asked()
    return Asked(f"{plan.largest_coalition} / {plan.parties}", plan.malicious and plan.corrupt < least, str(least))


def _security_bits(request: Request) -> Asked:
    plan, limits = request.plan, request.limits
    if not plan.secure:
        return Asked()
    bits = limits.security_bits + (GRINDING_BITS if plan.malicious else 0)
    breach = log2_breach(plan, limits.coalition(plan))
    return Asked("∞" if breach == -math.inf else down(-breach, 0), breach > -bits)


def _without_noise(request: Request) -> Asked:
    without = any(query.without_noise for query in request.plan.queries)
    return Asked(_shown(without), without and not request.limits.unsafe_no_noise)


def _unproven(request: Request) -> Asked:
    unproven = any(query.unproven for query in request.plan.queries)
    return Asked(_shown(unproven), unproven and not request.limits.unsafe_unproven)


ASKED: dict[str, Callable[[Request], Asked]] = {
    "max_epsilon": _max_epsilon,
    "max_delta": _max_delta,
    "lifetime_epsilon": _lifetime_epsilon,
    "lifetime_delta": lambda _: Asked(),
    "separate_data_sets": lambda _: Asked(),
    "queries": _queries,
    "max_top": _max_top,
    "min_survivors": _min_survivors,
    "unit": _unit,
    "min_unit_records": _min_unit_records,
    "malicious_coordinator": _malicious_coordinator,
    "corrupt": _corrupt,
    "security_bits": _security_bits,
    "unsafe_no_noise": _without_noise,
    "unsafe_unproven": _unproven,
}
"""Name of each limit to the function that compares a plan with it."""
