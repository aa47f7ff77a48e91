"""Plans: a plan with given noise and changes, and the plan of a method for a task with ten labels."""

import math

from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.queries.votes import VotesSpec
from server.domain import Membership, PrivacyTarget, Task
from server.planning.make_plan import make_plan
from server.settings.schema import Secagg

SPEC = VotesSpec(top=8)
QUERY = PlannedQuery(name="votes", spec=SPEC, times=4, scale=1560.0)
NUMBERS = {
    "method": "wasp",
    "labels": ("a", "b"),
    "encoder": "e5",
    "parties": 10,
    "max_dropouts": 1,
    "colluders": 3,
    "threshold": 7,
    "secure": True,
    "epsilon": 1.0,
    "delta": 1e-5,
    "unit": "sample",
}


def plan_with(**changes):
    values = {**NUMBERS, "queries": (QUERY,), **changes}
    if values["secure"] and type(values["parties"]) is int:
        values.setdefault("degree", max(values["parties"] - 1, 0))
        values.setdefault("corrupt", values["colluders"])
    return Plan(**values)


def plan_of_one(*queries, **changes):
    """Return a plan for one party without secure aggregation, to study the noise in a single answer."""
    one = {"parties": 1, "max_dropouts": 0, "colluders": 0, "threshold": 1, "secure": False, "epsilon": math.inf}
    return plan_with(queries=queries, **one | changes)


TEN = Task(name="t", kind="note", labels={f"label {number}": "" for number in range(10)})


def planned(method, epsilon, *, secagg="semi_honest", evaluation_share=0.0, **membership):
    return make_plan(
        method,
        task=TEN,
        encoder="e",
        target=PrivacyTarget(epsilon=epsilon),
        membership=Membership(**{"parties": 4} | membership),
        secagg=Secagg(mode=secagg),
        evaluation_share=evaluation_share,
    )
