"""Every figure of `privacy.json` holds when as many hospitals as its condition names leave their noise out."""

import math

import pytest

from common.plan.planned import PlannedQuery
from common.privacy.accountant import ReleasedAnswers, epsilon, trade_off
from common.queries.votes import VotesSpec
from server.planning.calibration import calibrate
from server.planning.guarantee_facts import describe
from tests.support.plans import plan_with

CORRUPT = 3
PARTIES = {"colluders": CORRUPT, "corrupt": CORRUPT, "roster": 32 * "ab", "threshold": 7}
HONEST = {"if_all_add_noise_epsilon"}
CONDITIONAL = {"epsilon", "planned_epsilon", "proven_epsilon", "released_epsilon", "party_epsilon", "epsilon_alone"}
"""Figures whose condition is that at most `CORRUPT` hospitals are corrupt."""
NO_PROMISE = {"pure_epsilon", "share_of_epsilon", "spent.epsilon", "strength", "one_in"}


def figures(value, path=""):
    """Each epsilon and each percentage of guesses of a document, with its path."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from figures(inner, f"{path}.{key}".lstrip("."))
    elif ("epsilon" in path or "guesses" in path) and not path.endswith(tuple(NO_PROMISE)):
        yield path, value


def corrupt_at(path, facts):
    """How many hospitals may leave their noise out under the condition of the figure with this path."""
    if path.startswith("against_colluders."):
        return facts["against_colluders"][int(path.split(".")[1])]["colluders"]
    name = path.rsplit(".", 1)[-1]
    assert name in CONDITIONAL | HONEST or "_guesses." in path, f"{path}: say under which condition it holds"
    return 0 if name in HONEST else CORRUPT


def faced(plan, corrupt):
    """What somebody faces who gets sums of the fewest survivors, of which some added no noise: by its variance."""
    (query,) = plan.queries
    noisy = max(1, plan.survivors - corrupt) if corrupt <= plan.largest_coalition else 1
    scale = math.sqrt(noisy * plan.share_sigma(query) ** 2)
    return [ReleasedAnswers(mechanism="gaussian", sensitivity=query.spec.sensitivity, scale=scale, times=query.times)]


def truth(path, releases, delta):
    bound, name = trade_off(releases, delta), path.rsplit(".", 1)[-1]
    prior = {"0": 0.01, "1": 0.001}.get(path.split(".")[-2]) if ".beliefs." in path else None
    match name:
        case "right" | "worst":
            return 100 * bound.even_guess
        case "average":
            return 100 * bound.average_belief(prior)
        case "highest":
            return 100 * bound.highest_belief(prior, 1e-3)
    return epsilon(releases, delta)


def planned(dropouts, target):
    votes = PlannedQuery(name="votes", spec=VotesSpec(top=8), times=4)
    return calibrate(plan_with(queries=(votes,), epsilon=math.inf, max_dropouts=dropouts, **PARTIES), target)


@pytest.mark.parametrize(("dropouts", "target"), [(0, 1.0), (3, 4.0)])
def test_no_figure_relies_on_noise_that_may_be_missing_under_its_condition(dropouts, target):
    plan = planned(dropouts, target)
    facts = describe(plan).to_json()
    found = list(figures(facts))
    for path, value in found:
        assert truth(path, faced(plan, corrupt_at(path, facts)), plan.delta) <= value * (1 + 1e-9), path
    assert len(found) == 6 + 1 + 2 * 6 + plan.parties


def test_a_figure_that_counts_the_noise_of_the_corrupt_is_found():
    """As the readers' epsilon was computed before: with the noise of all survivors."""
    plan = planned(3, 4.0)
    facts = describe(plan)
    before = facts.if_all_add_noise_epsilon
    assert truth("released_epsilon", faced(plan, corrupt_at("released_epsilon", facts)), plan.delta) > before + 1
