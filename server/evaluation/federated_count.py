"""Accuracy of a classifier on the parties' own records, from two noised counts.

After the last round, a linear classifier over the agreed encoder's vectors is trained on the synthetic texts and sent
to the parties, each of which counts how many of its records the classifier labels correctly
(`common.queries.correct_count.CorrectCountSpec`). Only the noised sums are revealed. The query is part of the plan, and
its fraction of epsilon is taken from the method's queries; a run with public test texts does not need the query.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from common.plan.plan import Plan
from common.plan.planned import PlannedQuery
from common.queries.correct_count import CorrectCount, CorrectCountSpec
from server.documents.metrics import Figure, Group
from server.domain import Candidate
from server.evaluation.small_model import linear_classifier
from server.federation.attempt import Answered
from server.metrics import intervals

NAME = "evaluation"
DEFINITION = (
    "Logistic regression (L2, C = 10) over the encoder's vectors of the synthetic texts; of all hospitals' records it "
    "is right on a noised number of a noised number. Intervals of 95% are of the Laplace noise alone "
    "(delta method)."
)
"""Definition of the figures, for reports."""

_NEVER = -1e6
"""Intercept for a label without texts: the lowest value that the query allows."""


def with_evaluation(queries: Sequence[PlannedQuery], share: float, max_records: int) -> tuple[PlannedQuery, ...]:
    """Return a method's queries with less epsilon, then the count. If `share` is 0, return the queries unchanged.

    The count has Laplace noise, which is the smallest possible for two counts queried once. It is pure, so that it
    costs no more than its fraction of epsilon, whatever the other queries are. Without other queries it is the whole
    plan, to be calibrated at that fraction (`server.planning.make_plan`).
    """
    if share == 0:
        return tuple(queries)
    rest = 1 - math.fsum(query.share * (1 - share) for query in queries)
    spec = CorrectCountSpec(max_records=max_records)
    counted = PlannedQuery(name=NAME, spec=spec, mechanism="laplace", share=rest, pure=True)
    return (*(replace(query, share=query.share * (1 - share)) for query in queries), counted)


def plans_count(plan: Plan) -> bool:
    """Return whether the plan contains the count."""
    return any(query.name == NAME for query in plan.queries)


def question(vectors: NDArray[np.float32], candidates: Sequence[Candidate], plan: Plan) -> CorrectCount:
    """Train the classifier on the synthetic texts, and return the query that contains it.

    Args:
        vectors: (candidates, dim).
        candidates: The synthetic texts, at least one.
        plan: A plan that contains the count.
    """
    labels = plan.labels
    (spec,) = (query.spec for query in plan.queries if isinstance(query.spec, CorrectCountSpec))
    weights = np.zeros((len(labels), vectors.shape[1]), dtype=np.float32)
    intercepts = np.full(len(labels), _NEVER, dtype=np.float32)
    trained = linear_classifier(vectors, candidates)
    present = [labels.index(name) for name in trained.labels]
    weights[present], intercepts[present] = trained.weights, trained.intercepts
    return CorrectCount(spec=spec, weights=weights, intercepts=intercepts)


def federated_count_group(plan: Plan, answered: Answered) -> Group:
    """Return the group for `metrics.json`: noised counts, the standard deviation of their noise, and the accuracy."""
    (query,) = (query for query in plan.queries if query.name == NAME)
    sigma = query.noise_deviation * plan.surplus(query, answered.survivors)
    right, records = (float(value) for value in answered.values)
    return {
        "definition": DEFINITION,
        "accuracy": _accuracy(right, records, sigma),
        "right": Figure(value=right, noise=sigma, interval=intervals.laplace_interval(right, sigma)),
        "records": Figure(value=records, noise=sigma, interval=intervals.laplace_interval(records, sigma)),
    }


def _accuracy(right: float, records: float, sigma: float) -> Figure:
    if records <= 2 * sigma or records <= 0:
        return Figure(reason=f"the noised number of records, {records:.0f}, is not above twice its noise, {sigma:.1f}")
    share = min(1.0, max(0.0, right / records))
    noise = sigma * math.sqrt(1 + share**2) / records
    low, high = intervals.laplace_interval(share, noise)
    return Figure(value=share, noise=noise, interval=(max(0.0, low), min(1.0, high)), rows=round(records))
