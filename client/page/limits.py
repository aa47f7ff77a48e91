"""The limits in force, each with the values that the last plans require.

They are edited in `client.yaml`, never here.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path

from client.approvals import PlanApproval, approvals
from client.deploy.plan_facts import down, up
from client.deploy.settings import HospitalSettings
from client.guard import Limits
from common.errors import ConfigError
from common.plan.aggregation import log2_breach
from common.plan.guarantee import epsilon_against
from common.plan.plan import Plan
from common.privacy.accountant import Release
from common.queries.votes import VotesSpec

LAST = 3
"""Number of most recent plans that are compared with the limits."""


@dataclass(frozen=True, slots=True)
class Asked:
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
class Request:
    """A plan, the limits that it is compared with, the charges of other runs, and the declared number of records."""

    plan: Plan
    limits: Limits
    charged: tuple[Release, ...]
    declared: int

    @property
    def least(self) -> str:
        """The minimum number of colluding hospitals that the masks must withstand; empty without masks."""
        return str(self.limits.coalition(self.plan)) if self.plan.secure else ""

    def asked(self) -> dict[str, Asked]:
        """Return the value that the plan requests for each limit, keyed by the limit's name."""
        beyond = {name for name, _ in self.limits.refusals(self.plan, self.charged, declared=self.declared)}
        return {
            name: Asked(value(self), name in beyond, self.least if name == "corrupt" else "")
            for name, value in ASKED.items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One limit.

    Attributes:
        name: The limit's name in `client.yaml`.
        value: The limit's value in `client.yaml`, or its default if the file does not set it.
        asked: The value that each of the last plans requests.
    """

    name: str
    value: str
    asked: tuple[Asked, ...]


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


def in_force(settings: HospitalSettings) -> InForce:
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
    declared = _declared(settings)
    asked = [
        Request(
            plan=plan,
            limits=limits,
            charged=ledger.charged("", but=approval.run) if ledger else (),
            declared=declared,
        ).asked()
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


def _declared(settings: HospitalSettings) -> int:
    """Return the number of records that this hospital declares; 0 without its roster, without which no service runs."""
    try:
        return settings.declared()
    except ConfigError:
        return 0


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(value)
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _max_epsilon(request: Request) -> str:
    plan = request.plan
    helpers = request.limits.helpers(plan) if plan.secure else 0
    return up(max(plan.epsilon, epsilon_against(plan, helpers)))


def _lifetime_epsilon(request: Request) -> str:
    plan, limits = request.plan, request.limits
    return up(limits.spent((*request.charged, *plan.releases(limits.unknown_shares(plan)))))


def _max_top(request: Request) -> str:
    tops = [query.spec.top for query in request.plan.queries if isinstance(query.spec, VotesSpec)]
    return str(max(tops)) if tops else ""


def _min_unit_records(request: Request) -> str:
    records = [query.spec.max_records for query in request.plan.queries]
    return str(min(records)) if records else ""


def _security_bits(request: Request) -> str:
    if not request.plan.secure:
        return ""
    breach = log2_breach(request.plan, request.limits.coalition(request.plan))
    return "∞" if breach == -math.inf else down(-breach, 0)


ASKED: dict[str, Callable[[Request], str]] = {
    "max_epsilon": _max_epsilon,
    "max_delta": lambda request: f"{request.plan.delta:g}",
    "lifetime_epsilon": _lifetime_epsilon,
    "lifetime_delta": lambda _: "",
    "separate_data_sets": lambda _: "",
    "queries": lambda request: ", ".join(dict.fromkeys(query.spec.kind for query in request.plan.queries)),
    "max_top": _max_top,
    "min_survivors": lambda request: str(request.plan.survivors if request.plan.secure else 1),
    "unit": lambda request: request.plan.unit,
    "min_unit_records": _min_unit_records,
    "malicious_coordinator": lambda request: _shown(request.plan.malicious),
    "corrupt": lambda request: f"{request.plan.largest_coalition} / {request.plan.parties}" if request.least else "",
    "security_bits": _security_bits,
    "unsafe_no_noise": lambda request: _shown(any(query.without_noise for query in request.plan.queries)),
    "unsafe_unproven": lambda request: _shown(any(query.unproven for query in request.plan.queries)),
}
"""Function that returns what a plan requests, keyed by the limit's name; `Limits.refusals` decides if the requested
value is over the limit."""
