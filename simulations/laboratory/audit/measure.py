"""Audit of the noise in the pipeline's real answers: party service, ledger, secure aggregation, and `ask`.

    make audit    or    OMP_NUM_THREADS=1 python -m simulations.laboratory.audit.measure [--quick] [--repeat 100]

All answers come from the code that hospitals and coordinator run, in one process. There are four checks:

1. Structure, with a sampler that only records its calls: each party adds one share to each answer, of scale
   sigma / sqrt(U) or of Polya shape 1 / U, under a separate key from the operating system.
2. Variance of the answers of parties without records. This check reveals one missing share, even among 100.
3. Laplace: the answers of parties without records, compared with the exact distribution by a chi-square test.
4. Gaussian: canary records, each inserted or omitted by a coin toss, change coordinates that no other record changes.
   The distinguishability of inserted and omitted canaries over all rounds is mu, which must match the promised epsilon
   and delta (`canaries.py`), for votes and for class sums. A separate test searches neighbouring data sets by brute
   force for the largest change of an answer (tests/properties/test_sensitivity.py).

Noise comes from the operating system, so an audit of sound code fails with probability `ALARM` for each statistical
check. The table shows the probability that a fault goes unnoticed.
"""

import argparse
import math
import sys
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from common.domain import Record
from common.plan.planned import PlannedQuery
from common.privacy.gaussian import gaussian_epsilon
from common.queries import closed_set, histograms, length_range
from common.queries.histograms import LabelHistogramSpec, LengthHistogramSpec, VocabularySpec
from common.queries.length_range import LengthRangeSpec
from common.queries.terms import encode_terms
from common.queries.votes import Votes, VotesSpec
from simulations.laboratory.audit import canaries
from simulations.laboratory.audit.federation import AXES, DELTA, Share, ask, half_of_the_noise, plan_of, recorded_noise
from simulations.laboratory.audit.finding import ALARM, AuditFinding, Z, head, print_finding


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table; exit with code 1 if a check failed."""
    parser = argparse.ArgumentParser(prog="audit", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes, with less power")
    parser.add_argument("--repeat", type=int, default=0, help="run the canaries so often, and with half of sigma")
    options = parser.parse_args(arguments)
    head()
    findings = _repeated(options.repeat) if options.repeat else _all(quick=options.quick)
    if not all(list(map(print_finding, findings))):  # print all findings first
        sys.exit(1)


def _all(*, quick: bool) -> Iterator[AuditFinding]:
    for secure in (True, False):
        yield from structure(secure=secure)
    yield from subsamples()
    yield variance(parties=10 if quick else 100, coordinates=20_000 if quick else 10**6)
    for scale in (0.8, 20.0):
        yield laplace(scale=scale, parties=10, coordinates=20_000 if quick else 10**6)
    for epsilon in (4.0, 8.0) if quick else (1.0, 2.0, 4.0, 8.0):
        yield canaries.canaries_in_votes(epsilon, labels=64 if quick else 512, rounds=2 if quick else 4)
    yield canaries.canaries_in_class_sums(4.0, labels=2048 if quick else 4096, rounds=2 if quick else 4)


def _repeated(times: int) -> Iterator[AuditFinding]:
    # The number of canaries needed to detect half of sigma grows as mu falls.
    for epsilon, labels in ((1.0, 256), (2.0, 64), (4.0, 32), (8.0, 16)):
        sound = [canaries.canaries_in_votes(epsilon, labels=labels, rounds=1) for _ in range(times)]
        alarms = [not finding.passed for finding in sound]
        with half_of_the_noise():
            halved = [canaries.canaries_in_votes(epsilon, labels=labels, rounds=1).passed for _ in range(times)]
        yield AuditFinding(
            check=f"{labels * AXES} canaries, epsilon {epsilon:g}, {times} runs each",
            figure=f"{sum(alarms)} alarms, {halved.count(False)} halved sigmas seen",
            limit=f"0 and {times}",
            unseen=sound[0].unseen,
            passed=not any(alarms) and not any(halved),
        )


def structure(*, secure: bool) -> Iterator[AuditFinding]:
    """Yield findings on the noise of five parties, of which one may drop out and another may collude."""
    votes, labels = VotesSpec(top=canaries.TOP), LabelHistogramSpec(labels=2)
    terms, cap = VocabularySpec(first=2), LengthRangeSpec(cap=9)
    queries = (
        PlannedQuery(name="votes", spec=votes, times=2, scale=40.5),
        PlannedQuery(name="labels", spec=labels, mechanism="laplace", scale=4.25),
        PlannedQuery(name="terms", spec=terms, times=2, mechanism="laplace", scale=6.75),
        PlannedQuery(name="lengths", spec=cap, mechanism="sparse vector", scale=8.0),
    )
    plan = plan_of(10.0, queries, labels=("a", "b"), parties=5, secure=secure, max_dropouts=1, colluders=1)
    of_label = np.zeros(len(canaries.candidates()), dtype=np.int32)
    vocabulary = histograms.Vocabulary(spec=terms, terms=encode_terms(("fever", "cough", "rash")))
    questions: list[tuple[str, closed_set.Query]] = [
        *[("votes", Votes(spec=votes, vectors=canaries.candidates(), labels=of_label))] * 2,
        ("labels", histograms.LabelHistogram(spec=labels)),
        *[("terms", vocabulary)] * 2,
        ("lengths", length_range.LengthRange(spec=cap)),
    ]
    with recorded_noise() as (shares, entropy):
        answers = ask(plan, questions, [[] for _ in range(5)])
    unknown = 5 - 1 - 1 if secure else 1
    of_a_party = [("discrete_gaussian", 40.5 / math.sqrt(unknown), 1, 2 * len(canaries.candidates()))] * 2
    of_a_party += [("discrete_laplace", 4.25, unknown, 2), *[("discrete_laplace", 6.75, unknown, 3)] * 2]
    expected = [share for share in of_a_party for _ in range(5)]
    keys = {share.key for share in shares if len(share.key) == 32}
    # The recording sampler draws 1 for each coordinate, and there are no records.
    once = sum(bool((total == 5).all()) for total in answers[:-1])
    name = f"structure, {'masked' if secure else 'not masked'}: "
    yield _exactly(name + "shares of noise", len(shares), len(expected))
    yield _exactly(name + f"those a U-th, U = {unknown}", _alike(shares, expected), len(expected))
    yield _exactly(name + "sums that hold each share once", once, 5)
    yield _exactly(name + "different keys", len(keys), len(expected))
    yield _exactly(name + "those the system's entropy", len(keys & set(entropy)), len(expected))
    yield _exactly(name + "keys taken by all answers", len(set(entropy)), 5 * 6)


def subsamples() -> Iterator[AuditFinding]:
    """Yield findings on whether two answers use the same subsample, and different ones if subsamples are redrawn."""
    labels = tuple(f"label {i}" for i in range(64))
    private = [[Record("0", label) for label in labels[party::2]] for party in range(2)]
    spec = LabelHistogramSpec(labels=64)
    for redraw in (False, True):
        query = PlannedQuery(name="labels", spec=spec, times=2, mechanism="laplace", rate=0.5, redraw=redraw)
        with recorded_noise():
            first_answer, other = ask(
                plan_of(1.0, (query,), labels=labels, parties=2),
                [("labels", histograms.LabelHistogram(spec=spec))] * 2,
                private,
            )
        differing, drawn = int(np.count_nonzero(first_answer != other)), int((first_answer - 2).sum())
        yield AuditFinding(
            check=f"subsamples {'of each answer' if redraw else 'for all answers'}",
            figure=f"{drawn} of 64 records, {differing} not again",
            limit="10 to 54, " + ("some" if redraw else "none"),
            passed=10 <= drawn <= 54 and bool(differing) == redraw,
        )


def variance(*, parties: int, coordinates: int, sigma: float = 40.0) -> AuditFinding:
    """Return the finding on an answer's variance without records, relative to sigma^2; standard error sqrt(2 / n)."""
    (noise,), planned = _without_records("gaussian", sigma, parties, coordinates)
    ratio, error = float(np.mean(noise.astype(np.float64) ** 2)) / planned**2, math.sqrt(2 / coordinates)
    missed = float(stats.norm.cdf((Z * error - 1 / parties) / (error * (1 - 1 / parties))))
    return AuditFinding(
        check=f"variance of {parties} shares, {coordinates:g} coordinates",
        figure=f"{ratio:.5f} of sigma^2",
        limit=f"1 +- {Z * error:.5f}",
        unseen=f"a missing share {missed:.0e}",
        passed=abs(ratio - 1) <= Z * error,
    )


def laplace(*, scale: float, parties: int, coordinates: int) -> AuditFinding:
    """Return the finding of a chi-square test that an answer without records has P(k) ∝ exp(-|k| / scale)."""
    (noise,), planned = _without_records("laplace", scale, parties, coordinates)
    reach = math.floor(planned * math.log(coordinates * math.tanh(1 / (2 * planned)) / 50))
    expected = coordinates * _laplace_cells(planned, reach)
    observed = np.bincount(np.clip(noise, -reach, reach) + reach, minlength=2 * reach + 1)
    p = float(stats.chisquare(observed, expected).pvalue)
    # A chi-square that is not central, by how far the cells of a smaller scale are from those expected.
    distance = float(((coordinates * _laplace_cells(planned / 1.1, reach) - expected) ** 2 / expected).sum())
    missed = stats.ncx2.cdf(stats.chi2.isf(ALARM, 2 * reach), 2 * reach, distance)
    return AuditFinding(
        check=f"Laplace of scale {scale:g}, {parties} shares, {coordinates:g} coordinates",
        figure=f"chi-square of {2 * reach + 1} cells, p = {p:.2g}",
        limit=f"p >= {ALARM:.0e}",
        unseen=f"scale / 1.1 {missed:.0e}",
        passed=p >= ALARM,
    )


def _without_records(
    mechanism: str, scale: float, parties: int, coordinates: int
) -> tuple[list[NDArray[np.int64]], float]:
    """Return the answer to a histogram from parties without records, and the planned scale, slightly above `scale`."""
    spec = LengthHistogramSpec(bins=coordinates)
    query = PlannedQuery(name="lengths", spec=spec, mechanism=mechanism)
    epsilon = 1 / scale if mechanism == "laplace" else gaussian_epsilon(DELTA, 1 / scale)
    plan = plan_of(epsilon, (query,), labels=("a",), parties=parties)
    question = histograms.LengthHistogram(spec=spec, edges=np.arange(1, coordinates, dtype=np.int32))
    return ask(plan, [("lengths", question)], [[] for _ in range(parties)]), plan.queries[0].scale


def _laplace_cells(scale: float, reach: int) -> NDArray[np.float64]:
    """Return the probabilities of the values from -reach to reach; the first and the last include the tails."""
    a = math.exp(-1 / scale)
    cells: NDArray[np.float64] = (1 - a) / (1 + a) * a ** np.abs(np.arange(-reach, reach + 1)).astype(np.float64)
    cells[[0, -1]] = a**reach / (1 + a)
    return cells


def _alike(drawn: Sequence[Share], expected: Sequence[tuple[str, float, int, int]]) -> int:
    """Return the number of shares that are as expected; both sequences are in the order of the run."""
    return sum(
        share[0] == target[0] and math.isclose(share[1], target[1], rel_tol=1e-12) and share[2:4] == target[2:]
        for share, target in zip(drawn, expected, strict=False)
    )


def _exactly(check: str, count: int, expected: int) -> AuditFinding:
    return AuditFinding(check=check, figure=str(count), limit=str(expected), passed=count == expected)


if __name__ == "__main__":
    main()
