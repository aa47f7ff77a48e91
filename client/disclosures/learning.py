"""Whether synthetic texts disclose training records more often than control records ("phantoms"), which no run used.

Setting (arXiv 2606.16952). Before any run, a hospital splits its records at random into n training and m control
records; the synthetic texts come later, from any source. For each feature of `features.py`, k records of the pool are
disclosed, x of them training records. Which records are disclosed depends on the pool and the texts but not on the
split. Texts that occur more than once in the pool are left out on both sides (`unique_sequences`): leaving them out on
one side alone would favour the other side.

**No learning.** If the texts do not depend on the training records, the split is still uniform given k, and x is
hypergeometric: k draws from n + m records, n of them training records (Fisher's exact test, one side). The p-value is
P[X >= x]. The test assumes no independence between records or texts, and no model of either.

**A given (ε, δ).** Assume that a run is (ε, δ)-DP if one record is added or removed. Training and control records form
min(n, m) pairs at random; given the pairs, a fair coin for each decides which of the two is in training, and flipping
one coin replaces one record: (2 ε, (1 + e^ε) δ)-DP. Wherever one record of a pair is disclosed and the other is not,
guess that the disclosed record is in training. Given the texts and the other coins, a guess is right with probability q
= e^(2 ε) / (1 + e^(2 ε)) at most, except for a number F of guesses that are right because of δ, whose expectation over
all pairs is pairs (1 + e^ε) δ at most (Steinke, Nasr and Jagielski 2023, as proved in
`simulations/private_evaluation/canaries.py`). So of d such pairs the number of right guesses is at most
binomial plus F, and by Markov's inequality, for any number i that is fixed beforehand,

    p = P[Binomial(d, q) >= right - i] + pairs (1 + e^ε) δ / (i + 1).

Here i is the smallest number for which the second term is at most `ALPHA` / 20.

A small p rejects the promise for the whole run: the promise fails for some record, but the test does not show for
which. The unit is a record, not a patient with several records. For ε of 1 or more, only wholesale copying can lead to
a rejection: `fewest_pairs` returns how many pairs this takes.

Each hypothesis is tested by each feature, with Holm's correction of the p-values: for one hypothesis, the probability
of a false alarm by any feature is at most `ALPHA`. **Not seen**: leaks that no feature shows (an attribute, a
translation, a style); records whose text occurs twice, which models memorise first; fewer disclosed records than
`fewest` (no test can reject with fewer); anything, if control records were not drawn at random from the same records.
"Nothing found" proves no privacy.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from client.disclosures.features import words_of
from common import rng
from common.errors import DataError
from common.validate import in_range

ALPHA = 0.05
"""Probability of a false alarm, over all features together."""
LARGEST_EPSILON = 15.0
"""Maximum ε that is tested; above it, the probability of a wrong guess, e^(-2 ε), is lost in rounding."""
FEWEST_RECORDS = 20
"""Minimum number of training records, and of control records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """The test of "no learning" by one feature.

    Attributes:
        training, control: Numbers of training and of control records that are disclosed.
        p: Probability that at least this number of training records is disclosed without learning.
        rejected: Whether "no learning" is rejected, corrected for the number of features.
    """

    feature: str
    training: int
    control: int
    p: float
    rejected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """The test of a promised (ε, δ) by one feature.

    Attributes:
        right: Number of pairs in which only the training record is disclosed.
        wrong: Number of pairs in which only the control record is disclosed.
        p: Bound on the probability of this number of right pairs or more if the promise holds.
        rejected: Whether the promise is rejected, corrected for the number of features.
    """

    feature: str
    right: int
    wrong: int
    p: float
    rejected: bool


def unique_sequences(training: Sequence[str], control: Sequence[str]) -> tuple[list[int], list[int]]:
    """Return the indices of the training and of the control records whose sequence of words occurs only once.

    Raises:
        DataError: Fewer than `FEWEST_RECORDS` are left on a side.
    """
    words = [[words_of(text) for text in side] for side in (training, control)]
    counts = Counter(words[0] + words[1])
    kept = [[place for place, text in enumerate(side) if counts[text] == 1] for side in words]
    for name, side in zip(("records of training", "control records"), kept, strict=True):
        if len(side) < FEWEST_RECORDS:
            expected = f"{FEWEST_RECORDS} or more whose text occurs once among records and control records"
            raise DataError(name, expected=expected, got="fewer", do="Hold back more records, at random")
    return kept[0], kept[1]


def learning(flags: Mapping[str, NDArray[np.bool_]], n: int) -> list[Learning]:
    """Test "no learning" by each feature.

    Args:
        flags: Keyed by feature: (n + m,) bool, whether each record is disclosed; training records come first.
        n: Number of training records.
    """
    counts = {name: (int(flag[:n].sum()), int(flag[n:].sum())) for name, flag in flags.items()}
    p = {name: no_learning(*counts[name], n=n, m=len(flag) - n) for name, flag in flags.items()}
    rejected = _rejected(p)
    return [
        Learning(feature=name, training=training, control=control, p=p[name], rejected=name in rejected)
        for name, (training, control) in counts.items()
    ]


def promise(flags: Mapping[str, NDArray[np.bool_]], n: int, *, epsilon: float, delta: float) -> list[Promise]:
    """Test, by each feature, the hypothesis that a run is (ε, δ)-DP if one record is added or removed.

    Args:
        flags: As for `learning`.
        n: Number of training records.
        epsilon: ε, up to `LARGEST_EPSILON`.
        delta: δ, a probability.

    Raises:
        ConfigError: ε or δ is out of range.
    """
    # The order has to be independent of the records: any seed will do.
    generator, m = rng.experiment(0, "pairs of records"), len(next(iter(flags.values()))) - n
    pairs = min(n, m)
    first, second = generator.permutation(n)[:pairs], n + generator.permutation(m)[:pairs]
    counts = {}
    for name, flag in flags.items():
        one, other = flag[first], flag[second]
        counts[name] = int((one & ~other).sum()), int((other & ~one).sum())
    p = {name: promise_p_value(*count, pairs=pairs, epsilon=epsilon, delta=delta) for name, count in counts.items()}
    rejected = _rejected(p)
    return [
        Promise(feature=name, right=right, wrong=wrong, p=p[name], rejected=name in rejected)
        for name, (right, wrong) in counts.items()
    ]


def no_learning(training: int, control: int, *, n: int, m: int) -> float:
    """Return the p-value of "no learning" if `training` of n and `control` of m records are disclosed."""
    from scipy import stats

    return float(stats.hypergeom.sf(training - 1, n + m, n, training + control))


def promise_p_value(right: int, wrong: int, *, pairs: int, epsilon: float, delta: float) -> float:
    """Return the p-value of the promise (ε, δ), at most 1, for these right and wrong guesses among all pairs.

    Raises:
        ConfigError: ε or δ is out of range.
    """
    from scipy import stats

    exceptions, probability = _exceptions(pairs, epsilon, delta)
    return min(1.0, float(stats.binom.sf(right - exceptions - 1, right + wrong, _right(epsilon))) + probability)


def fewest(n: int, m: int, *, features: int) -> int:
    """Return the smallest number of disclosed records that is significant for a feature if all are training records."""
    disclosed, p = 0, 1.0
    while p > ALPHA / features and disclosed < n:
        p *= (n - disclosed) / (n + m - disclosed)
        disclosed += 1
    return disclosed


def fewest_pairs(pairs: int, *, features: int, epsilon: float, delta: float) -> int | None:
    """Return the smallest number of guesses, all right, with which a feature rejects (ε, δ); None if no number does."""

    def rejects(right: int) -> bool:
        return promise_p_value(right, 0, pairs=pairs, epsilon=epsilon, delta=delta) <= ALPHA / features

    right = 1 + bisect_left(range(1, pairs + 1), True, key=rejects)
    return right if right <= pairs else None


def _rejected(p: Mapping[str, float]) -> set[str]:
    """Return the names whose hypotheses Holm's procedure rejects: in order of p, until p exceeds ALPHA / names left."""
    rejected: set[str] = set()
    for name in sorted(p, key=lambda name: p[name]):
        if p[name] > ALPHA / (len(p) - len(rejected)):
            break
        rejected.add(name)
    return rejected


def _right(epsilon: float) -> float:
    """Return the largest probability of a right guess about a pair, apart from δ: q in the module's docstring."""
    return 1 / (1 + math.exp(-2 * epsilon))


def _exceptions(pairs: int, epsilon: float, delta: float) -> tuple[int, float]:
    """Return i in the module's docstring, and a bound on the probability that δ makes more than i guesses right."""
    in_range(0, LARGEST_EPSILON, epsilon=epsilon)
    in_range(0, 1, delta=delta)
    expected = pairs * (1 + math.exp(epsilon)) * delta
    exceptions = max(0, math.ceil(20 * expected / ALPHA) - 1)
    return exceptions, expected / (exceptions + 1)
