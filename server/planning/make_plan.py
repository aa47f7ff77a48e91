"""The privacy plan: all queries of a run and their cost, fixed before any private data is accessed."""

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common.domain import MOST_RECORDS
from common.errors import ConfigError, PlanError
from common.messages import LARGEST_ENVELOPE, LARGEST_PLAN, largest_request
from common.plan.plan import Plan
from common.secagg.graph import coalition, rounded_up, threshold_of_full_graph
from common.secagg.graph import parameters as graph_parameters
from server.domain import Membership, Task
from server.evaluation.federated_count import with_evaluation
from server.method import Method, SeveralLabels
from server.planning.calibration import calibrate
from server.settings.schema import Secagg
from server.settings.sections import PrivacyTarget

log = logging.getLogger("caucus.planning")

EXPECTED_RECORDS = "federation.expected_records"
_LARGE_DELTA = 1e-3


def colluders(secagg: Secagg, parties: int) -> int:
    """Return the number of parties assumed to reveal their noise to the coordinator, unless the settings specify it.

    If the coordinator is not trusted, it is the number of colluders against which the masks are secure, as hospitals
    assume. Otherwise the coordinator is assumed to follow the protocol and to act alone.
    """
    return coalition(secagg.corrupt, parties) if secagg.malicious else 0


def large_delta(delta: float, number: int | None, of: str) -> list[str]:
    """Return a warning if δ exceeds 1 / `number`, the number of records or users; none if `number` is 0 or None."""
    if not number or delta * number <= 1:
        return []
    advice = "choose a smaller, as a mechanism that publishes one of them whole would satisfy it"
    return [f"privacy.delta={delta:g} is above 1 / {number:,}, one over {of}; {advice}"]


def check_delta(delta: float, declared: int) -> None:
    """Raise a ConfigError unless δ is below one over the records that a hospital declares, as each hospital demands."""
    if delta * declared >= 1:
        raise ConfigError(
            "privacy.delta",
            expected=f"below 1/{declared}, one over the number of records that a hospital declares or has",
            got=delta,
            do="Choose a smaller, as at this one a mechanism may publish a hospital's record whole; a hospital that "
            "declares more records than it has may declare fewer (caucus-party rotate --max-records)",
        )


def check_sizes(plan: Plan) -> None:
    """Check that the plan and the run's largest message of keys or shares are as small as a hospital demands.

    Raises:
        PlanError: One is not; each hospital would refuse it, in the middle of the run.
    """
    size = len(plan.to_json())
    if size > LARGEST_PLAN:
        do = "Use fewer or shorter labels, or shorter statements."
        raise PlanError("size of the plan", expected=f"at most {LARGEST_PLAN:,} bytes", got=f"{size:,}", do=do)
    most = largest_request(parties=plan.parties, degree=plan.degree, answers=plan.total_queries)
    if plan.secure and most > LARGEST_ENVELOPE:
        raise PlanError(
            "size of a message with keys or shares",
            expected=f"at most {LARGEST_ENVELOPE:,} bytes",
            got=f"up to {most:,} for {plan.parties:,} parties and {plan.total_queries:,} answers",
            do="Choose fewer rounds, fewer attempts or fewer parties.",
        )


def make_plan(
    method: Method[Any],
    *,
    task: Task,
    encoder: str,
    target: PrivacyTarget,
    membership: Membership,
    secagg: Secagg,
    roster: str = "",
    evaluation_share: float = 0.0,
    max_records_per_party: int = MOST_RECORDS,
    stated: Mapping[str, str] = {},
) -> Plan:
    """Price and calibrate all queries of `method`, and that of a federated evaluation if it gets a fraction of epsilon.

    A single party cannot hide among other parties, so it adds all of the noise itself, and there are no masks. If the
    coordinator is not trusted, `roster` is the hex digest of the parties' identities. `stated` has the coordinator's
    statements, keyed by field (`common.plan.plan.STATED`).

    Raises:
        ConfigError, PlanError: Settings contradict each other; the message contains the numbers.
    """
    parties, delta = membership.parties, target.delta
    if delta > _LARGE_DELTA:
        log.warning("delta %g: each record may be given away with that probability; well below 1/M is usual", delta)
    if membership.max_attempts > 1 and not secagg.malicious:
        log.warning(
            "federation.max_attempts=%d pays for attempts that only secagg=malicious can make: where nobody signs the "
            "survivors, they are named when their sum is opened, and no other may be",
            membership.max_attempts,
        )
    if secagg.secure and parties == 1:
        log.warning("one party alone: it adds all the noise itself, and no masks are made")
    if evaluation_share:
        do = "Set evaluation.federated=0"
        task.check_labelled("evaluation.federated", "which a classifier gets right", do)
        task.check_single("evaluation.federated", "which a classifier gets right", do)
    queries = method.plan(task, target, membership)
    if not any(query.spec.by_section for query in queries):
        reason = "as none of its queries takes records section by section"
        task.check_whole(f"method {method.name}", reason, "Choose method=class_sums")
    if not isinstance(method, SeveralLabels):
        one = "for its numbers and prompts are of one label"
        task.check_single(f"method {method.name}", one, "Choose method=class_sums or method=wasp")
    graph = _graph(secagg, membership) if secagg.secure and parties > 1 else _Graph()
    draft = Plan(
        method=method.name,
        labels=tuple(task.labels),
        encoder=encoder,
        parties=parties,
        max_dropouts=membership.max_dropouts,
        colluders=membership.colluders,
        threshold=graph.threshold,
        secure=graph.degree > 0,
        degree=graph.degree,
        corrupt=graph.corrupt,
        roster=roster if graph.degree else "",
        epsilon=math.inf,
        delta=delta,
        unit=target.unit,
        queries=with_evaluation(queries, evaluation_share, target.max_records),
        max_attempts=membership.max_attempts,
        max_records_per_party=max_records_per_party,
        **stated,
    )
    # A count beside no other query has the whole of the plan's epsilon, which is its fraction of the target's.
    part = evaluation_share if evaluation_share and not queries else 1.0
    return calibrate(draft, part * target.epsilon, calibration=target.calibration)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Graph:
    """The plan's parameters for masks; the defaults mean no secure aggregation."""

    degree: int = 0
    threshold: int = 1
    corrupt: int = 0


def _graph(secagg: Secagg, membership: Membership) -> _Graph:
    parties, max_dropouts = membership.parties, membership.max_dropouts
    corrupt = max(membership.colluders, rounded_up(secagg.corrupt, parties))
    if parties <= secagg.full_graph_up_to:
        lowest = threshold_of_full_graph(parties, corrupt, malicious=secagg.malicious)
        threshold = secagg.threshold or max(parties // 2 + 1, lowest)
        return _Graph(degree=parties - 1, threshold=threshold, corrupt=corrupt)
    degree, threshold = graph_parameters(
        parties,
        # A coordinator may leave out honest parties from the start, never more than the plan lets drop.
        corrupt=min(1.0, corrupt / max(1, parties - max_dropouts)),
        dropped=max(secagg.dropped, max_dropouts / parties),
        security_bits=secagg.security_bits,
        correctness_bits=secagg.correctness_bits,
        malicious=secagg.malicious,
    )
    if degree == parties - 1:
        threshold = max(threshold, parties // 2 + 1)
    return _Graph(degree=degree, threshold=threshold, corrupt=corrupt)
