"""The limits in force, each with the values that the last plans require.

They are edited in `client.yaml`, never here.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path

from client.approval.entries import PlanApproval, approvals
from client.approval.facts import round_down, round_up
from client.deploy.settings import HospitalSettings
from client.guard import Limits
from common.errors import ConfigError
from common.plan.aggregation import log2_breach
from common.plan.guarantee import epsilon_against
from common.plan.plan import Plan
from common.privacy.accountant import ReleasedAnswers
from common.queries.votes import VotesSpec

LAST = 3
"""Number of most recent plans that are compared with the limits."""


@dataclass(frozen=True, slots=True)
class RequestedValue:
    """The value that one plan requests for one limit.

    Attributes:
        value: The value; empty if the plan has nothing to compare with the limit.
        beyond: Whether the limit refuses the value.
        least: The smallest value that the limit accepts, if the limit itself is stated in another form; otherwise
            empty.
    """

    value: str = ""
    beyond: bool = False
    least: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One limit: its name in `client.yaml`, its value there or by default, and what each of the last plans requests."""

    name: str
    value: str
    asked: tuple[RequestedValue, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """The limits that the party service reads at each opening of a run and at each question.

    Attributes:
        file: The file in which the limits are edited.
        approval: "manual" or "auto".
        runs: Names of the last runs, newest first, and the decision about each.
        limits: All limits.
        problem: Why the service does not start with the ledger; figures in `asked` may then be too low. Empty if it
            starts.
    """

    file: Path
    approval: str
    runs: tuple[PlanApproval, ...]
    limits: tuple[Limit, ...]
    problem: str


def limits_in_force(settings: HospitalSettings) -> InForce:
    """Return the limits in force, each compared with the last plans.

    Raises:
        LedgerError: The ledger was edited, is damaged or cannot be read.
        ConfigError: The folder of the note of the ledger's head is missing.
    """
    readable = (
        (approval, plan) for approval in reversed(approvals(settings.private)) if (plan := approval.read_plan())
    )
    last = tuple(islice(readable, LAST))
    limits = settings.party.limits
    ledger, problem = settings.inspected_ledger()
    declared = 0  # without this hospital's roster, without which no service runs
    with suppress(ConfigError):
        declared = settings.declared()
    asked = [
        requested_values(plan, limits, ledger.charged("", but=approval.run) if ledger else (), declared=declared)
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
                asked=tuple(of_plan[field.name] for of_plan in asked),
            )
            for field in fields(Limits)
        ),
        problem=problem,
    )


def requested_values(
    plan: Plan, limits: Limits, charged: Sequence[ReleasedAnswers], *, declared: int
) -> dict[str, RequestedValue]:
    """Return the value that a plan requests for each limit, keyed by its name; `charged` are charges of other runs."""
    specs, secure = [query.spec for query in plan.queries], plan.secure
    helpers, coalition = (limits.helpers(plan), limits.coalition(plan)) if secure else (0, 0)
    values = {
        "max_epsilon": round_up(max(plan.epsilon, epsilon_against(plan, helpers))),
        "max_delta": f"{plan.delta:g}",
        "lifetime_epsilon": round_up(limits.spent((*charged, *plan.releases(limits.unknown_shares(plan))))),
        "lifetime_delta": "",
        "separate_data_sets": "",
        "queries": ", ".join(dict.fromkeys(spec.kind for spec in specs)),
        "max_top": str(max((spec.top for spec in specs if isinstance(spec, VotesSpec)), default="")),
        "min_survivors": str(plan.survivors if secure else 1),
        "unit": plan.unit,
        "min_unit_records": str(min((spec.max_records for spec in specs), default="")),
        "malicious_coordinator": _shown(plan.malicious),
        "corrupt": f"{plan.largest_coalition} / {plan.parties}" if secure else "",
        "security_bits": _security_bits(plan, coalition) if secure else "",
        "unsafe_no_noise": _shown(any(query.without_noise for query in plan.queries)),
        "unsafe_unproven": _shown(any(query.unproven for query in plan.queries)),
    }
    beyond = {name for name, _ in limits.refusals(plan, charged, declared=declared)}
    least = {"corrupt": str(coalition)} if secure else {}
    return {name: RequestedValue(value, name in beyond, least.get(name, "")) for name, value in values.items()}


def _security_bits(plan: Plan, coalition: int) -> str:
    breach = log2_breach(plan, coalition)
    return "∞" if breach == -math.inf else round_down(-breach, 0)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(value)
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
