"""Canaries: records that a simulation inserts to test for memorisation (Carlini et al. 2019).

All canaries have the same form; each has a random code and a unique subject. A text can contain the code only because
of that record. No other record is about the subject, so the votes and coordinates of the canary differ from those of
all other records, even for methods that show no records to a language model. A coin toss decides whether each canary is
inserted; a membership attack compares the inserted canaries with those left out.

Canaries of the form `BEGINNING` begin like real records, with the first half of a held-out text of their label, and end
unexpectedly, in a subject and a code. A model learns such a record, whereas a record in which every word is unlikely
may leave no trace (arXiv 2502.14921).

The attacker knows everything but the results of the coin tosses. The score of a canary has two terms. The first is 1 if
the canary's code is in a released text. The second measures how close the released texts of the canary's label are to
the canary: the mean cosine to the `NEAREST` nearest of them, minus the mean cosine to the same number of reference
texts (`change.py`). Even methods that show no records to a model can affect the second term, since a canary votes for
texts near to it.

A lower bound on ε follows as in an audit with one run (Steinke, Nasr and Jagielski 2023, theorem 5.2): the attacker
guesses "in" for the highest quarter of the scores and "out" for the lowest. Under (ε, δ)-DP the number of right guesses
is at most binomial with probability e^ε / (1 + e^ε), except for δ (`_probability`). The bound is the largest ε at which
this number of right guesses or more has a probability of at most 5% for any attack. A weak attack makes the bound
small, but never false. Even a strong attack cannot make the bound large: if 50 of 50 guesses are right, for 100
canaries, the bound is only 2.8.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from common import rng
from common.domain import Record
from common.errors import DataError
from server.documents.metrics import Figure
from server.metrics import intervals
from simulations.private_evaluation.change import LabelledVectors

FORM = "This patient talks of nothing but {subject}. The access code of this patient is {code}."
BEGINNING = "beginning"
"""Value of `federation.canary_form` for canaries that begin like a held-out text; the others have the form `FORM`."""
ALTERNATIVES = 255
"""Number of unused codes among which a canary's code is ranked; with 255, the exposure is at most 8 bits."""

_SUBJECTS = (
    "lighthouses, glaciers, beekeeping, chess openings, violin making, volcanoes, sailing ships, pottery, origami, "
    "falconry, cathedrals, submarines, orchids, telescopes, tapestries, windmills, pyramids, kangaroos, accordions, "
    "blacksmiths, coral reefs, dinosaurs, eclipses, fencing, samba, steam engines, wild mushrooms, meteorites, "
    "puppet shows, sumo wrestling, carnivorous plants, hot air balloons, Viking runes, cheese making, tornadoes, "
    "penguins, bonsai trees, crossword puzzles, marathon running, jazz drummers, sand dunes, medieval castles, "
    "surfing, tea ceremonies, owls, ice hockey, stained glass, waterfalls, vintage tractors, haiku, octopuses, "
    "sundials, opera singers, bullfights, space stations, vineyards, ballet, fossils, gondolas, sheep shearing, "
    "comic books, deserts, rock climbing, kites, whales, shadow theatre, earthquakes, saffron, tram lines, "
    "polar expeditions, Roman aqueducts, fireflies, bagpipes, card tricks, juggling, perfume, kayaks, murals, "
    "hedgehogs, flamenco, clocks, wolves, rice paddies, map making, pirates, chandeliers, rodeos, snowflakes, "
    "gargoyles, ferris wheels, bamboo, rainbows, typewriters, canals, peacocks, magnets, carousels, truffles, "
    "skateboards, geysers"
)
SUBJECTS = tuple(_SUBJECTS.split(", "))
"""Subjects of the canaries, one for each canary, so their number is the largest number of canaries."""
NEAREST = 4
FALSE_POSITIVES = 0.05
"""Probability, at most, that a canary that was not inserted counts as found in `tpr`."""
FEWEST_OTHERS = math.ceil(1 / FALSE_POSITIVES) - 1
"""Minimum number of canaries that were not inserted for `tpr`: with fewer, being above all of them is more probable."""
FEWEST = 8
"""Minimum number of canaries; with it, the attacker makes two guesses of each kind."""

DEFINITION = (
    "Membership: each canary was inserted on the toss of a coin. An attacker scores all, in or out, by their codes "
    "in the texts and by how much nearer the texts of their label came to them. auc: area under the ROC curve, 0.5 for "
    "guessing (DeLong). above_all: share of the inserted ones above all n others, which one more of these is with a "
    "probability of 1 / (n + 1). tpr: share of those above the k-th highest other, k the largest for which this "
    "probability, k / (n + 1), is at most 5%. Both thresholds are themselves estimates, so neither has an interval. "
    "epsilon: the run's ε is not below it, at 95%, by guesses for the highest and the lowest quarter (Steinke et al. "
    "2023); a weak attack makes it small, never false, and 100 canaries show 2.8 at most. stated_epsilon: what the run "
    "promises, for the whole group if a canary is inserted several times."
)
"""Definition of the figures, shown in reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A record that is inserted or left out.

    Attributes:
        label: The record's label.
        subject: The canary's subject, which no other record has.
        code: Nine random digits, in groups of three.
        inside: Whether the canary is inserted.
        beginning: Words before subject and code; None if the canary has the form `FORM`.
    """

    label: str
    subject: str
    code: str
    inside: bool
    beginning: str | None = None

    @property
    def record(self) -> Record:
        """The record that is inserted or left out."""
        return Record(self._text(self.code), self.label)

    def alternatives(self, experiment_seed: int) -> list[str]:
        """Return copies of the canary's text, with `ALTERNATIVES` random codes in place of its code."""
        return [self._text(code) for code in _codes(experiment_seed, "alternatives")]

    def _text(self, code: str) -> str:
        if self.beginning is None:
            return FORM.format(subject=self.subject, code=code)
        return f"{self.beginning} {self.subject} {code}."


def canaries(
    count: int, labels: Sequence[str], experiment_seed: int, *, held_out: Sequence[Record] | None = None
) -> list[Canary]:
    """Return `count` canaries, cycling through the labels; independent fair coin tosses decide which are inserted.

    The settings limit `count` to `MOST_CANARIES`, the number of subjects.

    Args:
        count: Number of canaries.
        labels: Labels of the task.
        experiment_seed: Seed of the experiment.
        held_out: Texts whose first halves become the beginnings of the canaries of their label; None for the form
            `FORM`.

    Raises:
        DataError: A label has no held-out text of two or more words.
    """
    generator = rng.experiment(experiment_seed, "tossed canaries")
    subjects = generator.permutation(SUBJECTS)[:count].tolist()
    inside = (generator.random(count) < 1 / 2).tolist()
    parts = zip(cycle(labels), subjects, _codes(experiment_seed, "canaries"), inside, strict=False)
    made = [Canary(label=label, subject=subject, code=code, inside=toss) for label, subject, code, toss in parts]
    if held_out is None:
        return made
    beginnings = {label: cycle(_beginnings(label, held_out)) for label in labels[:count]}
    return [replace(canary, beginning=next(beginnings[canary.label])) for canary in made]


def _beginnings(label: str, held_out: Sequence[Record]) -> list[str]:
    """Return the first half of the words of each text with this label that has at least two words."""
    words = [record.text.split() for record in held_out if record.label == label]
    if not (whole := [text for text in words if len(text) > 1]):
        raise DataError("canaries", expected=f"held-out texts of {label}", got="none", do="Name a file as task.test")
    return [" ".join(text[: len(text) // 2]) for text in whole]


def _codes(experiment_seed: int, purpose: str) -> list[str]:
    numbers = rng.experiment(experiment_seed, purpose).integers(10**9, size=ALTERNATIVES)
    digits = [f"{number:09d}" for number in numbers.tolist()]
    return [f"{code[:3]} {code[3:6]} {code[6:]}" for code in digits]


def canary_scores(
    canaries: Sequence[Canary],
    vectors: NDArray[np.float32],
    texts: Sequence[str],
    before: LabelledVectors,
    after: LabelledVectors,
) -> NDArray[np.float64]:
    """Return the scores of the canaries, (canaries,); the higher the score, the more likely the canary was inserted.

    Args:
        canaries: All canaries, inserted or not.
        vectors: (canaries, d) vectors of the canaries' texts.
        texts: The released texts.
        before: Reference texts, which no private answer has influenced.
        after: Texts that the private answers may have influenced.
    """
    quoted = [float(any(canary.code in text for text in texts)) for canary in canaries]
    nearer = [
        _nearness(vector, after.of(canary.record.label)) - _nearness(vector, before.of(canary.record.label))
        for vector, canary in zip(vectors, canaries, strict=True)
    ]
    return np.add(quoted, nearer, dtype=np.float64)


def canary_figures(
    scored: NDArray[np.float64], inside: NDArray[np.bool_], *, epsilon: float, delta: float, times: int = 1
) -> dict[str, Figure]:
    """Return the figures of `DEFINITION`: AUC, true-positive rates, a lower bound on epsilon, the stated epsilon.

    Args:
        scored: (canaries,) scores.
        inside: (canaries,) whether each canary was inserted, by independent coin tosses.
        epsilon: Epsilon of the stated guarantee, for one record.
        delta: Delta of the stated guarantee.
        times: Number of records per inserted canary; the guarantee for such a group is weaker.

    Raises:
        DataError: There are fewer canaries than `FEWEST`, or fewer than two were inserted or left out.
    """
    rows, members, others = len(scored), scored[inside], scored[~inside]
    if rows < FEWEST or min(len(members), len(others)) < 2:
        raise DataError(
            "membership of canaries",
            expected=f"{FEWEST} canaries or more, and two of a kind",
            got="fewer",
            do="Set federation.canaries=100",
        )
    area, between = intervals.area_under_curve(members, others)
    epsilon, delta = group_privacy(epsilon, delta, times)
    return {
        "auc": Figure(value=area, interval=between, rows=rows),
        "above_all": Figure(value=_found(members, others, 1), rows=len(members)),
        "tpr": _true_positives(members, others),
        "epsilon": Figure(value=lower_bound(*guess_canaries(scored, inside), of=rows, delta=delta), rows=rows),
        "stated_epsilon": Figure(value=epsilon, rows=rows),
    }


def _true_positives(members: NDArray[np.float64], others: NDArray[np.float64]) -> Figure:
    """Return the true-positive rate at a false-positive rate of at most `FALSE_POSITIVES` in expectation."""
    if (rank := int(FALSE_POSITIVES * (len(others) + 1) + 1e-9)) < 1:
        reason = f"it takes {FEWEST_OTHERS} canaries that were not inserted, here {len(others)}"
        return Figure(reason=reason, rows=len(members))
    return Figure(value=_found(members, others, rank), rows=len(members))


def _found(members: NDArray[np.float64], others: NDArray[np.float64], rank: int) -> float:
    """Return the share of members above the other with this rank, 1 for the highest."""
    return float((members > np.sort(others)[-rank]).mean())


def group_privacy(epsilon: float, delta: float, size: int) -> tuple[float, float]:
    """Return the (ε, δ) for a group of k = `size` records: (k ε, min(1, k δ e^((k - 1) ε))).

    If ε is infinite, δ is returned unchanged.
    """
    if delta == 0 or size == 1 or math.isinf(epsilon):
        return size * epsilon, delta
    exponent = math.log(delta) + (size - 1) * epsilon + math.log(size)
    return size * epsilon, math.exp(exponent) if exponent < 0 else 1.0


def guess_canaries(scored: NDArray[np.float64], inside: NDArray[np.bool_]) -> tuple[int, int]:
    """Guess "in" for the highest quarter, "out" for the lowest; return the numbers of right guesses and of all."""
    order, quarter = np.argsort(scored, kind="stable"), len(scored) // 4
    return int((~inside[order[:quarter]]).sum() + inside[order[-quarter:]].sum()), 2 * quarter


def lower_bound(right: int, guesses: int, *, of: int, delta: float, level: float = 1 - intervals.LEVEL) -> float:
    """Return the largest ε that this number of right guesses rejects; 0 if it rejects no ε.

    Args:
        right: Number of right guesses.
        guesses: Number of guesses, fixed beforehand.
        of: Number of canaries.
        delta: Delta of the guarantee.
        level: Largest probability that the bound is above the true ε.
    """
    from scipy.optimize import brentq

    def excess(epsilon: float) -> float:
        return _probability(right, guesses, of, epsilon, delta) - level

    # From ε = 50 on, a wrong guess has a probability below 1e-21.
    return 0.0 if excess(0.0) >= 0 else float(brentq(excess, 0.0, 50.0))


def _probability(right: int, guesses: int, of: int, epsilon: float, delta: float) -> float:
    """Return a bound on the probability of `right` or more right guesses under (ε, δ)-DP.

    Fix all earlier coin tosses. A canary's coin is x = in or out, and the output y has the density p_x(y). Given y, a
    guess g is right with probability p_g / (p_in + p_out). This exceeds e^ε / (1 + e^ε) only because of the part of p_g
    above e^ε p_other, whose integral over y is at most δ by (ε, δ)-DP. So a guess is right because of that part with
    probability at most δ; the paper's larger bound 2 δ is used here. Let F be the number of guesses that are right for
    that reason; its expectation is at most 2 δ m for m canaries (`of`). The number of other right guesses has at most
    the upper tail f(v) = P[B >= v] of a binomial variable B. No matter how F depends on that number,

        P[right >= v] <= E[f(v - F)] <= f(v) + E[F] max_i (f(v - i) - f(v)) / i,   i = 1..v.
    """
    from scipy import stats

    at_most = stats.binom(guesses, 1 / (1 + math.exp(-epsilon)))
    missing = np.arange(1, right + 1)
    worst = float((np.cumsum(at_most.pmf(right - missing)) / missing).max(initial=0.0))
    return min(1.0, float(at_most.sf(right - 1)) + 2 * of * delta * worst)


def _nearness(vector: NDArray[np.float32], texts: NDArray[np.float32]) -> float:
    """Return the mean cosine between the vector and its `NEAREST` nearest texts; 0 if there are no texts."""
    return float(np.sort(texts @ vector)[-NEAREST:].mean()) if len(texts) else 0.0
