"""Checks that the values of a plan are consistent: parties, masks, and each query's noise and sums."""

import hashlib
import math
from typing import TYPE_CHECKING

from common.domain import is_one_population
from common.errors import PlanError
from common.plan.planned import PlannedQuery
from common.privacy.samplers import LARGEST_LAPLACE_TABLE
from common.secagg.messages import signers

if TYPE_CHECKING:
    from common.plan.plan import Plan

SMALLEST_SHARE = 2.0
"""Minimum scale of a noise share, in grid units. For smaller scales tau (`gaussian.sum_gap`) is too large: it is 7e-17
at this scale, and 5e-4 at 1."""


def check_parties(plan: "Plan") -> None:
    """Check the number U of noise shares and, under secure aggregation, the bounds on the threshold."""
    if plan.survivors < 1:
        got = f"{plan.parties} parties - {plan.max_dropouts} dropouts = {plan.survivors}"
        raise PlanError("parties that remain", expected="at least 1", got=got, do="Allow fewer dropouts.")
    if not plan.secure:
        if plan.roster or plan.degree or plan.corrupt:
            do = "Leave them out, or turn secure aggregation on."
            raise PlanError("roster, degree and corrupt are for secure aggregation", do=do)
        return
    if plan.corrupt < plan.colluders:
        expected = f"at least the {plan.colluders} colluders that the noise allows for"
        do = "Assume as many corrupt parties as colluders."
        raise PlanError("corrupt parties", expected=expected, got=plan.corrupt, do=do)
    if plan.parties < 2:
        do = "Turn secure aggregation off: a sum over one party hides nothing."
        raise PlanError("parties under secure aggregation", expected="at least 2", got=plan.parties, do=do)
    if plan.noise_parties < 1:
        raise PlanError(
            "shares of noise that can be relied on",
            expected="at least 1",
            got=f"{plan.parties} parties - {plan.max_dropouts} dropouts - {plan.colluders} colluders "
            f"= {plan.noise_parties}",
            do="Allow fewer dropouts or assume fewer colluders.",
        )
    _check_masks(plan)


def _check_masks(plan: "Plan") -> None:
    """Check the graph, the threshold and the signatures of secure aggregation."""
    full = plan.parties - 1
    if plan.degree != full and (plan.degree % 2 or not 2 <= plan.degree < full):
        raise PlanError("degree", expected=f"{full} for the full graph, or an even number below", got=plan.degree)
    if plan.malicious and len(plan.roster) != 2 * hashlib.sha256().digest_size:
        raise PlanError("roster", expected="64 hex digits, or none", got=f"{len(plan.roster)} characters")
    # On the full graph a threshold of at most half of the parties could be reached twice, once in each half, and one of
    # at most the colluders by the colluders alone. On a sparse graph both hold for each neighbourhood, and
    # `common.secagg.graph` computes the bound.
    lowest, highest = max(plan.parties // 2, plan.colluders, plan.corrupt) + 1, plan.survivors
    if plan.degree < full:
        lowest, highest = 2, plan.degree + 1
    if not lowest <= plan.threshold <= highest:
        raise PlanError(
            "threshold",
            expected=f"{lowest} to {highest}: more than half of the parties, more than the colluders, "
            "not more than parties - dropouts",
            got=plan.threshold,
            do="Change the threshold, or allow fewer dropouts.",
        )
    needed = signers(
        plan.parties,
        corrupt=plan.corrupt,
        degree=plan.degree,
        threshold=plan.threshold,
        survivors=plan.survivors,
    )
    if plan.malicious and needed > plan.survivors:
        raise PlanError(
            "survivors that can sign",
            expected=f"at least {needed}, so that no other set of survivors finds as many",
            got=plan.survivors,
            do="Allow fewer dropouts, assume fewer corrupt parties, or raise the threshold.",
        )


def check_query(plan: "Plan", query: PlannedQuery) -> None:
    """Check that a query has noise if epsilon is finite, that its noise can be split, and that sums fit the ring."""
    spec = query.spec
    if (query.scale == 0 or query.unproven) and plan.epsilon < math.inf:
        expected, got = "a scale above 0 and a proof", f"scale {query.scale:g}, epsilon {plan.epsilon:g}"
        raise PlanError(f"noise of {query.name}", expected=expected, got=got, do="Use calibrate to make plans.")
    if plan.unit == "sample" and spec.max_records != 1:
        do = "Set the unit to user, or max_records to 1."
        raise PlanError(f"max_records of {query.name}", expected="1 at sample level", got=spec.max_records, do=do)
    if spec.labels_per_record > 1 and query.rate < 1:
        what = f"{query.name} cannot be subsampled, as a record counts under several labels"
        raise PlanError(what, got=f"rate {query.rate:g}", do="Ask all records, or one label of each.")
    if spec.by_section and is_one_population(plan.labels):  # a hospital's sheet would say that all records take part
        raise PlanError(f"labels of {query.name}", expected="headings", got=plan.labels[0])
    spec.check(query.name, len(plan.labels))
    if spec.largest is None:
        return
    share = plan.share_sigma(query)
    if query.mechanism == "gaussian" and 0 < share < SMALLEST_SHARE:
        raise PlanError(
            f"share of noise for {query.name}",
            expected=f"at least {SMALLEST_SHARE:g} grid units",
            got=f"{share:.3g}",
            do="Use a finer grid (more votes in each direction), a smaller epsilon, fewer parties, or Laplace noise.",
        )
    if query.mechanism == "laplace" and query.scale > LARGEST_LAPLACE_TABLE:
        raise PlanError(
            f"scale of {query.name}",
            expected=f"at most {LARGEST_LAPLACE_TABLE:g} grid units",
            got=f"{query.scale:.3g}",
            do="Use a coarser grid, fewer features, a larger share of epsilon, or Gaussian noise.",
        )
    largest = plan.largest_sum(query, plan.parties)
    if largest >= 2**63:
        do = "Lower max_records_per_party, or use a coarser grid (fewer votes in each direction)."
        raise PlanError(f"sums of {query.name}", expected="below 2^63", got=f"up to {largest:.3g}", do=do)
