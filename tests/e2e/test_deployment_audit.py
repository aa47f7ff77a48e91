"""A worst-case audit of each mechanism through real nodes: SuperLink, SuperNodes, party services, TLS, ledgers, masks.

Three hospitals hold planted canaries, each of which moves coordinates of its own by all of a query's sensitivity
(`tests/support/worst_case.py`). The coordinator, who knows all canaries, keeps what it receives, and this test computes
from it how well the answers tell which canaries are in:

    discrete Gaussian   mu of the canaries' scores (`simulations/audit/canaries.py`): votes, masked and summed
    discrete Laplace    odds of right guesses, exactly e^epsilon : 1, where both coordinates of a canary agree
    exponential         odds of the preferred candidate among three, exactly e^epsilon : 2
    sparse vector       where it stops, as a normal score by its exact distribution

A statistic of sound noise is beyond its limits with probability `ALARM`, 6e-7, each. Half of a noise would pass with
the probability that is printed, below 1e-4 each.
"""

import math
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from client.contributions.contribute import contribution
from client.records import embed
from common import rng
from common.models.encoder import Encoder
from common.queries.closed_set import make_query
from server.federation.checkpoint import Checkpoint
from server.tasks import demo_notes
from simulations.audit.canaries import distinguished
from simulations.audit.finding import ALARM, Finding, Z
from tests.support import worst_case
from tests.support.deployed import Deployment
from tests.support.runs import SMALL, WASP, read
from tests.support.worst_case import (
    ASKED,
    CANARIES,
    CHOICES,
    EPSILON,
    HOSPITALS,
    LENGTHS,
    SHARES,
    TERMS,
    TOP,
    VOTES,
    WorstCase,
)

LABELS = tuple(demo_notes.LABELS)
HALVED = 1e-4


def test_a_canary_moves_all_that_is_stated():
    encoder = Encoder.hashed_ngrams()
    (first, *_), inside = worst_case.planted(LABELS)
    assert inside.sum() == HOSPITALS * CANARIES / 2
    arrays = worst_case.questions(encoder.encode)
    for planned in WorstCase().plan(None, None, None)[:2]:
        query = make_query(planned.spec, arrays[planned.name])
        both = [contribution(query, embed(few, encoder).for_plan(LABELS)) for few in (first[:4], first[:5])]
        moved = both[1] - both[0]
        stated = planned.spec.sensitivity
        assert (moved.sum(), (moved**2).sum()) == (stated.l1, stated.l2_squared)
        assert not (moved * both[0]).any()  # nobody else's coordinates


def test_the_sparse_vector_stops_where_its_distribution_says():
    from common.privacy.mechanisms import length_range

    stops = [length_range([worst_case.CAP] * 20, worst_case.CAP, 2.5, rng.secure_bytes(32))[0] for _ in range(400)]
    assert abs(_normal_score(stops, worst_case.shortest_stop(20, 2.5))) < Z
    assert abs(_normal_score(stops, worst_case.shortest_stop(20, 1.25))) > Z


@pytest.fixture(scope="module")
def audited():
    """The folder of a run that asked everything, and which canaries were in."""
    folder = Path(tempfile.mkdtemp(prefix="caucus-"))
    private, inside = worst_case.planted(LABELS)
    made = Deployment(folder, HOSPITALS, private=private)
    try:
        made.without_noise()  # epsilon is far above a hospital's own limit, so that few answers tell much
        made.up()
        small = [setting for setting in SMALL if setting not in WASP and not setting.startswith("method")]
        method = ("method=rupta", "method._target_=tests.support.worst_case.WorstCase", "method.name=worst_case")
        other = ("~method.rewritings", "~method.longest", "method.samples=8", f"privacy.epsilon={EPSILON}")
        made.coordinator("run", made.here, "audit", *small, *method, *other, timeout=1200)
        yield made.result("audit"), inside
    finally:
        made.ended()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.deployment
def test_answers_of_real_nodes_tell_as_much_as_promised_and_no_more(audited):
    folder, inside = audited
    privacy = read(folder, "privacy.json")
    assert privacy["aggregation"].startswith("secure")
    assert privacy["spent"]["queries_asked"] == privacy["spent"]["queries_planned"] == sum(ASKED.values())
    scales = {query["name"]: query["scale_grid"] for query in privacy["queries"]}
    checkpoint = Checkpoint(folder / "state")
    answers = [checkpoint.answer(index) for index in range(sum(ASKED.values()))]
    asked = iter(answers)
    of = {name: [next(asked) for _ in range(times)] for name, times in ASKED.items()}
    specs = {planned.name: planned.spec for planned in WorstCase().plan(None, None, None)}

    findings = [
        _gaussian(of[VOTES][0], specs[VOTES].sensitivity.l2 / scales[VOTES], inside),
        _laplace(of[TERMS][0], 2 / scales[TERMS], inside),
        _exponential(of[CHOICES], 1 / scales[CHOICES]),
        _sparse_vector(of[LENGTHS], scales[LENGTHS]),
    ]
    for finding in findings:
        print(f"{finding.check}: {finding.figure}; {finding.limit}; would pass: {finding.unseen}")  # noqa: T201 its figures
    assert all(finding.passed for finding in findings)
    promised = {name: SHARES[name] * EPSILON / ASKED[name] for name in (TERMS, CHOICES, LENGTHS)}
    found = {TERMS: 2 / scales[TERMS], CHOICES: 1 / scales[CHOICES], LENGTHS: 4 / scales[LENGTHS]}
    assert found == pytest.approx(promised, rel=1e-3)


def _gaussian(total, mu, inside):
    votes = total.reshape(2, HOSPITALS * CANARIES, 2, TOP)[[0, 1], :, [0, 1]] @ 2.0 ** -np.arange(TOP)
    return distinguished(f"discrete Gaussian, {inside.size} canaries", mu, votes.sum(axis=0), inside.ravel())


def _laplace(total, epsilon, inside):
    """Guess "in" where both of a canary's counts are 1 or more, and "out" where neither is."""
    counts = total.reshape(-1, 2)
    guessed_in, guessed_out = (counts >= 1).all(axis=1), (counts <= 0).all(axis=1)
    right = np.count_nonzero(np.where(inside.ravel(), guessed_in, guessed_out))
    return _odds("discrete Laplace", right, np.count_nonzero(guessed_in | guessed_out), epsilon, wrong=1)


def _exponential(answers, epsilon):
    """All records of a hospital have the candidate of its number for their best."""
    own = sum(np.count_nonzero(answer[hospital] == hospital) for answer in answers for hospital in range(HOSPITALS))
    return _odds("exponential", own, sum(answer.size for answer in answers), epsilon, wrong=HOSPITALS - 1)


def _odds(what, right, cases, epsilon, *, wrong):
    """`right` of so many cases, the odds of each being e^epsilon to the number of wrong outcomes."""

    def among(epsilon):
        odds = math.exp(epsilon) / wrong
        return stats.binom(cases, odds / (1 + odds))

    low, high = among(epsilon).ppf([ALARM / 2, 1 - ALARM / 2])
    passes = among(2 * epsilon).cdf(high) - among(2 * epsilon).cdf(low - 1)
    found = math.log(wrong * right / max(cases - right, 0.5))
    return Finding(
        check=f"{what}, {cases} cases",
        figure=f"epsilon {found:.3f} by {right} of them",
        limit=f"{epsilon:.3f} promised, {low:.0f} to {high:.0f} of them",
        unseen=f"half of the noise {passes:.0e}",
        passed=low <= right <= high and passes < HALVED,
    )


def _sparse_vector(answers, scale):
    stops = [int(low) for answer in answers for low, _ in answer]
    records = CANARIES // 2
    score = _normal_score(stops, worst_case.shortest_stop(records, scale))
    tried = 4 / np.geomspace(scale / 4, scale * 4, 65)
    likeliest = max(tried, key=lambda epsilon: _log_likelihood(stops, worst_case.shortest_stop(records, 4 / epsilon)))
    mean, spread = _scores_under(worst_case.shortest_stop(records, scale / 2), worst_case.shortest_stop(records, scale))
    passes = stats.norm.cdf((Z - mean * math.sqrt(len(stops))) / spread)
    return Finding(
        check=f"sparse vector, {len(stops)} answers",
        figure=f"normal score {score:.2f}, epsilon of the likeliest scale {likeliest:.3f}",
        limit=f"{4 / scale:.3f} promised, score within {Z:g}",
        unseen=f"half of the noise {passes:.0e}",
        passed=abs(score) <= Z and passes < HALVED,
    )


def _normal_score(values, probabilities):
    """Standard normal if the values have these probabilities: a jump of the distribution is filled at random."""
    below = np.cumsum(probabilities) - probabilities
    drawn = rng.experiment(int.from_bytes(rng.secure_bytes(8)), "jumps").random(len(values))
    places = below[values] + drawn * probabilities[values]
    return float(stats.norm.ppf(np.clip(places, 1e-12, 1 - 1e-12)).sum() / math.sqrt(len(values)))


def _scores_under(true, assumed):
    """Mean and standard deviation of one value's normal score by the assumed probabilities, under the true ones."""
    below, filled = np.cumsum(assumed) - assumed, (np.arange(20) + 0.5) / 20
    scores = stats.norm.ppf(np.clip(below[:, None] + filled * assumed[:, None], 1e-12, 1 - 1e-12))
    mean = (true @ scores).mean()
    return mean, math.sqrt((true @ scores**2).mean() - mean**2)


def _log_likelihood(values, probabilities):
    return np.log(np.maximum(probabilities[values], 1e-300)).sum()
