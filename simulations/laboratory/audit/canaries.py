"""Power of the pipeline's Gaussian answers to reveal which canary records were inserted, compared with the guarantee.

A canary changes coordinates that no other record changes, by the full sensitivity of the query, and this change is
public. The canary's score is the inner product of the answers with that change, over all rounds, in units of the
change's norm. By the Neyman-Pearson lemma, no test distinguishes Gaussians better than this score. The score is normal,
with a standard deviation of 1 / mu times the difference between its two means; this is mu-Gaussian DP (Dong, Roth and
Su 2022). Estimated from n canaries, half of which are inserted, mu has a variance of about 4 / n + mu^2 / (2 n) and is
skewed: large values are more frequent than for a normal variable. So the compared value is sqrt(2 n) asinh(mu / r) with
r^2 = 2 n (1 / in + 1 / out), where `in` and `out` are the numbers of inserted and of omitted canaries. This value has
variance 1 for any mu. From 500 canaries on, the value of a sound answer is beyond 5 with a probability of 1e-6 or less,
by the exact distribution of mu, a noncentral t.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from common import rng
from common.domain import Record
from common.plan.planned import PlannedQuery
from common.privacy.gaussian import gaussian_epsilon, gaussian_mu
from common.queries.class_sums import ClassSums, ClassSumsSpec
from common.queries.page import Query
from common.queries.votes import Votes, VotesSpec
from simulations.laboratory.audit.federation import AXES, DELTA, ask, plan_of
from simulations.laboratory.audit.finding import AuditFinding, Z

TOP, PARTIES = 4, 3


def canaries_in_votes(epsilon: float, *, labels: int, rounds: int) -> AuditFinding:
    """Measure canaries in votes; each alone is near `TOP` candidates, and it is furthest from their opposites."""
    near = candidates()
    of_label = np.repeat(np.arange(labels, dtype=np.int32), len(near))
    question = Votes(spec=VotesSpec(top=TOP, fine=4), vectors=np.tile(near, (labels, 1)), labels=of_label)
    inside = _tossed(labels, AXES)
    total = _summed_answers(epsilon, question, inside, rounds)
    votes = total.reshape(2, labels, 2, AXES, TOP)[[0, 1], :, [0, 1]] @ 2.0 ** -np.arange(TOP)
    return _finding("canaries", epsilon, votes.sum(axis=0), inside, rounds)


def canaries_in_class_sums(epsilon: float, *, labels: int, rounds: int) -> AuditFinding:
    """Measure canaries in class sums; each is the only record of its label, and changes all four directions equally."""
    basis = np.zeros((4, AXES), dtype=np.float32)
    basis[:, :4] = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2
    spec = ClassSumsSpec(labels=labels, directions=4, count=32, grid=64)
    centres, radius = np.zeros((labels, AXES), dtype=np.float32), np.full(1, 0.5, dtype=np.float32)
    question = ClassSums(spec=spec, basis=basis, centres=centres, radius=radius)
    inside = _tossed(labels, 1)
    total = _summed_answers(epsilon, question, inside, rounds)
    change = np.array([spec.grid / 2] * 4 + [spec.count])
    return _finding("canaries of class sums", epsilon, total.reshape(labels, 5) @ change[:, None], inside, rounds)


def candidates() -> NDArray[np.float32]:
    """Return unit vectors, (2 * AXES * TOP, AXES): `TOP` at growing distances from each axis, then their opposites."""
    angles = 0.1 * np.arange(1, TOP + 1)
    axes = np.eye(AXES)
    near = np.cos(angles)[:, None] * axes[:, None] + np.sin(angles)[:, None] * np.roll(axes, 1, axis=1)[:, None]
    return np.concatenate([near, -near]).reshape(-1, AXES).astype(np.float32)


def _tossed(labels: int, axes: int) -> NDArray[np.bool_]:
    """Return the result of a coin toss for each canary: whether it is inserted, (labels, axes)."""
    return rng.experiment(int.from_bytes(rng.secure_bytes(8)), "canaries").random((labels, axes)) < 1 / 2


def _summed_answers(epsilon: float, question: Query, inside: NDArray[np.bool_], rounds: int) -> NDArray[np.float64]:
    """Ask the question once in each round; return the sum of the noised answers."""
    names = tuple(f"label {label}" for label in range(len(inside)))
    query = PlannedQuery(name="canaries", spec=question.spec, times=rounds)
    plan = plan_of(epsilon, (query,), labels=names, parties=PARTIES)
    private: list[list[Record]] = [[] for _ in range(PARTIES)]
    for label, axis in np.argwhere(inside):
        private[label % PARTIES].append(Record(str(axis), names[label]))
    return np.asarray(sum(ask(plan, [("canaries", question)] * rounds, private)), dtype=np.float64)


def distinguishing_finding(
    check: str, mu: float, scores: NDArray[np.float64], inside: NDArray[np.bool_]
) -> AuditFinding:
    """Return the finding on how well the canaries' scores reveal which of them are inserted.

    Args:
        check: Name of the check.
        mu: The mu of the plan's guarantee.
        scores: (n,) scores of all canaries, in any unit.
        inside: (n,) whether each canary is inserted.
    """
    into, out = scores[inside], scores[~inside]
    spread = math.sqrt((into.var(ddof=1) * len(into) + out.var(ddof=1) * len(out)) / scores.size)
    difference = (into.mean() - out.mean()) / spread

    # See the head of this file: the normal score of mu, and the mu of a score that is `by` errors higher.
    error, unit = 1 / math.sqrt(2 * scores.size), math.sqrt(2 * scores.size * (1 / len(into) + 1 / len(out)))

    def shifted(true: float, by: float) -> float:
        return unit * math.sinh(math.asinh(true / unit) + by * error)

    def score(true: float) -> float:
        return (math.asinh(true / unit) - math.asinh(mu / unit)) / error

    def unseen(true: float) -> float:
        return float(stats.norm.cdf(Z - score(true)) - stats.norm.cdf(-Z - score(true)))

    highest = gaussian_epsilon(DELTA, shifted(difference, Z))
    epsilon = gaussian_epsilon(DELTA, max(difference, 1e-3))
    return AuditFinding(
        check=check,
        figure=f"mu {difference:.4f}: epsilon {epsilon:.2f}, below {highest:.2f}",
        limit=f"{mu:.4f}: {shifted(mu, -Z):.3f} to {shifted(mu, Z):.3f}",
        unseen=f"sigma / 2 {unseen(2 * mu):.0e}, 2 sigma {unseen(mu / 2):.0e}",
        passed=abs(score(difference)) <= Z,
    )


def _finding(
    what: str, epsilon: float, scores: NDArray[np.float64], inside: NDArray[np.bool_], rounds: int
) -> AuditFinding:
    check = f"{scores.size} {what}, epsilon {epsilon:g}, {rounds} rounds"
    return distinguishing_finding(check, gaussian_mu(epsilon, DELTA), scores, inside)
