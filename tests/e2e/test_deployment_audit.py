"""A worst-case audit of each mechanism through real nodes: SuperLink, SuperNodes, party services, TLS, ledgers, masks.

Three hospitals hold planted canaries, each of which moves coordinates of its own by all of a query's sensitivity
(`tests/support/worst_case.py`). The coordinator, who knows all canaries, keeps what it receives, and this test computes
from it how well the answers tell which canaries are in:

    discrete Gaussian   mu of the canaries' scores (`laboratory/audit/canaries.py`): votes, masked and summed
    discrete Laplace    odds of right guesses, exactly e^epsilon : 1, where both coordinates of a canary agree
    exponential         odds of the preferred candidate among three, exactly e^epsilon : 2
    sparse vector       where it stops, as a normal score by its exact distribution

A statistic of sound noise is beyond its limits with probability `ALARM`, 6e-7, or less, each; the Gaussian's with 1e-6.
Half of a noise would pass with the probability that is printed, below 1e-2 each.
"""

import functools
import math
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from client.contributions import counts, seed_choices
from client.contributions.contribute import contribution
from client.records import embed_records
from common import rng
from common.models.encoder import Encoder
from common.privacy.mechanisms import length_range
from common.privacy.samplers import discrete_gaussian, discrete_laplace
from common.queries.closed_set import make_query
from server.federation.checkpoint import Checkpoint
from server.tasks import demo_notes
from simulations.laboratory.audit.canaries import distinguishing_finding
from simulations.laboratory.audit.finding import ALARM, AuditFinding, Z
from tests.support import worst_case
from tests.support.deployed import Deployment
from tests.support.runs import SMALL, WASP, read
from tests.support.worst_case import (
    ASKED,
    CANARIES,
    CAP,
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

LABELS = demo_notes.LABELS
PLANNED = {planned.name: planned for planned in WorstCase().plan(None, None, None)}
HALVED = 1e-2
"""Largest probability with which half of a noise may pass."""


@pytest.fixture(scope="module")
def planted():
    """Each hospital's canaries, embedded; which are in; and the queries."""
    encoder = Encoder.hashed_ngrams()
    private, inside = worst_case.planted(LABELS)
    arrays = worst_case.questions(encoder.encode)
    queries = {planned.name: make_query(planned.spec, arrays[planned.name]) for planned in PLANNED.values()}
    return [embed_records(few, encoder) for few in private], inside, queries


def test_a_canary_moves_all_that_is_stated(planted):
    (first, *_), inside, queries = planted
    assert inside.sum() == HOSPITALS * CANARIES / 2
    records = first.for_plan(LABELS)
    for query in (queries[VOTES], queries[TERMS]):
        before, after = (contribution(query, records._only(np.arange(CANARIES // 2) < few)) for few in (4, 5))
        stated = query.spec.sensitivity
        assert ((after - before).sum(), ((after - before) ** 2).sum()) == (stated.l1, stated.l2_squared)
        assert not ((after - before) * before).any()  # nobody else's coordinates


@pytest.mark.parametrize(("share", "passed"), [(1.0, True), (0.5, False)])
def test_sound_noise_passes_and_half_of_it_is_found_for_each_mechanism(planted, share, passed):
    """The same statistics, by the same samplers, without nodes."""
    private, inside, queries = planted
    records = [party.for_plan(LABELS) for party in private]
    scales = {VOTES: 40.0, TERMS: 1.0, LENGTHS: 15.0, CHOICES: 0.5}
    key = functools.partial(rng.secure_bytes, 32)

    def noised(name, sampler):
        total = sum(contribution(queries[name], party) for party in records)
        return total + sampler(share * scales[name], len(total), key())

    def choices(party):
        return seed_choices.choose_seeds(queries[CHOICES], party, share * scales[CHOICES], key(), replacement=True)

    def lengths(party):
        return length_range(counts.lengths(party), CAP, share * scales[LENGTHS], key())

    answers = {
        VOTES: [noised(VOTES, discrete_gaussian)],
        TERMS: [noised(TERMS, discrete_laplace)],
        LENGTHS: [np.array([lengths(party) for party in records]) for _ in range(ASKED[LENGTHS])],
        CHOICES: [np.array([choices(party) for party in records]) for _ in range(ASKED[CHOICES])],
    }
    assert [finding.passed for finding in findings(answers, scales, inside)] == [passed] * 4


def test_the_score_of_a_sparse_vector_raises_as_many_alarms_as_said():
    whole, halved = (worst_case.shortest_stop(CANARIES // 2, scale) for scale in (15.0, 7.5))
    answers = HOSPITALS * ASKED[LENGTHS]
    assert 1 - _passing(whole, whole, answers) == pytest.approx(ALARM, rel=0.1)
    assert 1e-6 < _passing(halved, whole, answers) < 1e-4  # 8e-6; 6 of 800,000 drawn


@pytest.fixture(scope="module")
def audited():
    """The folder of a run that asked everything, and which canaries were in."""
    folder = Path(tempfile.mkdtemp(prefix="caucus-"))
    private, inside = worst_case.planted(LABELS)
    with Deployment(folder, HOSPITALS, private=private) as made:
        made.without_noise()  # epsilon is far above a hospital's own limit, so that few answers tell much
        made.up()
        small = [setting for setting in SMALL if setting not in WASP and not setting.startswith("method")]
        method = ("method=rupta", "method._target_=tests.support.worst_case.WorstCase", "method.name=worst_case")
        # Nobody is expected to help the coordinator, so that a sum has the noise that is promised and no more.
        other = ("~method.rewritings", "~method.longest", "method.samples=8", f"privacy.epsilon={EPSILON}")
        made.coordinator(
            "run", "--yes", made.here, "audit", *small, *method, *other, "federation.colluders=0", timeout=1200
        )
        yield made.result("audit"), inside


@pytest.mark.deployment
def test_answers_of_real_nodes_tell_as_much_as_promised_and_no_more(audited):
    folder, inside = audited
    privacy = read(folder, "privacy.json")
    assert privacy["aggregation"].startswith("secure")
    assert privacy["spent"]["queries_asked"] == privacy["spent"]["queries_planned"] == sum(ASKED.values())
    scales = {query["name"]: query["scale_grid"] for query in privacy["queries"]}
    checkpoint = Checkpoint(folder / "state")
    numbers = iter(range(sum(ASKED.values())))
    answers = {name: [checkpoint.answer(next(numbers)) for _ in range(times)] for name, times in ASKED.items()}
    results = findings(answers, scales, inside)
    for result in results:
        sys.stdout.write(
            f"\naudited | {result.check} | {result.figure} | {result.limit} | would pass: {result.unseen}\n"
        )
    assert all(result.passed for result in results)
    promised = {name: SHARES[name] * EPSILON / ASKED[name] for name in (TERMS, CHOICES, LENGTHS)}
    noised = {TERMS: 2 / scales[TERMS], CHOICES: 1 / scales[CHOICES], LENGTHS: 4 / scales[LENGTHS]}
    assert noised == pytest.approx(promised, rel=1e-3)


def findings(answers, scales, inside):
    """One for each mechanism.

    Args:
        answers: By query, all of its answers.
        scales: By query, the planned scale on the grid.
        inside: (hospitals, canaries) which canaries are in.
    """
    return [
        _gaussian(answers[VOTES][0], PLANNED[VOTES].spec.sensitivity.l2 / scales[VOTES], inside),
        _laplace(answers[TERMS][0], 2 / scales[TERMS], inside),
        _exponential(answers[CHOICES], 1 / scales[CHOICES]),
        _sparse_vector(answers[LENGTHS], scales[LENGTHS]),
    ]


def _gaussian(total, mu, inside):
    votes = total.reshape(2, HOSPITALS * CANARIES, 2, TOP)[[0, 1], :, [0, 1]] @ 2.0 ** -np.arange(TOP)
    return distinguishing_finding(f"discrete Gaussian, {inside.size} canaries", mu, votes.sum(axis=0), inside.ravel())


def _laplace(total, epsilon, inside):
    """Guess "in" where both of a canary's counts are 1 or more, and "out" where neither is."""
    counts = total.reshape(-1, 2)
    guessed_in, guessed_out = (counts >= 1).all(axis=1), (counts <= 0).all(axis=1)
    right = np.count_nonzero(np.where(inside.ravel(), guessed_in, guessed_out))
    return _odds("discrete Laplace", right, np.count_nonzero(guessed_in | guessed_out), epsilon, wrong=1)


def _exponential(answers, epsilon):
    """All records of a hospital have the candidate of its number for their best."""
    own_choices = sum(
        np.count_nonzero(answer[hospital] == hospital) for answer in answers for hospital in range(HOSPITALS)
    )
    return _odds("exponential", own_choices, sum(answer.size for answer in answers), epsilon, wrong=HOSPITALS - 1)


def _odds(what, right, cases, epsilon, *, wrong):
    """`right` of so many cases, the odds of each being e^epsilon to the number of wrong outcomes."""

    def among(epsilon):
        odds = math.exp(epsilon) / wrong
        return stats.binom(cases, odds / (1 + odds))

    low, high = among(epsilon).ppf([ALARM / 2, 1 - ALARM / 2])
    passes = among(2 * epsilon).cdf(high) - among(2 * epsilon).cdf(low - 1)
    least_epsilon = math.log(wrong * right / max(cases - right, 0.5))
    return AuditFinding(
        check=f"{what}, {cases} cases",
        figure=f"epsilon {least_epsilon:.3f} by {right} of them",
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
    halved, whole = (worst_case.shortest_stop(records, of) for of in (scale / 2, scale))
    passes = _passing(halved, whole, len(stops))
    return AuditFinding(
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


def _passing(true, assumed, number):
    """Probability that the normal score of so many values, by the assumed probabilities, is within Z under the true.

    Exact but for cells of 0.04. A normal approximation would be too small by a factor of thousands: the scores of half
    of the noise have a long tail towards those of the whole.
    """
    below, filled = np.cumsum(assumed) - assumed, (np.arange(200) + 0.5) / 200
    scores = stats.norm.ppf(np.clip(below[:, None] + filled * assumed[:, None], 1e-12, 1 - 1e-12))
    cells, width = 2**13, 0.04  # sums lie within 18 * 7.04, and wrap around beyond 163
    one = np.bincount(np.rint(scores / width).astype(int).ravel() % cells, np.repeat(true / 200, 200), cells)
    total = np.fft.fftshift(np.fft.irfft(np.fft.rfft(one) ** number, cells))
    sums = width * (np.arange(cells) - cells // 2)
    return max(0.0, total[np.abs(sums) <= Z * math.sqrt(number)].sum())


def _log_likelihood(values, probabilities):
    return np.log(np.maximum(probabilities[values], 1e-300)).sum()
