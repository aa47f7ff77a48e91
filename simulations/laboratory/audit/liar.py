r"""Effect of one lying hospital out of ten on a result, by method: a hospital cannot be forced to use its real records.

    OMP_NUM_THREADS=1 TQDM_DISABLE=1 python -m simulations.laboratory.audit.liar \
        [--records 100 1000] [--epsilon 4] [--seeds 10]

Masks hide false values as well as true ones. A hospital that follows the protocol with false records is not detected; a
sum that no records can produce is refused (`server/federation/plausible.py`). So the liar here has two options:

- to use as many false records as an honest hospital has real ones (1 x), or ten times as many, the largest number that
  it declares;
- to use its own records with each label replaced by the next one, so that texts count for another label.

The first table is about whole runs on the demo's notes, with the built-in models. It shows the accuracy, on real test
notes, of a classifier trained on the texts, and by how many points this is below the accuracy of the same run without a
liar. The second table is about a single query and one label. For votes, it shows the fraction of the label's exemplars
that the liar named beforehand, if the other records vote at random (0.27 without a liar). For class sums, it shows how
far the label's estimated mean moves, in radii, from an offset that is 0.4 radii long, and the estimate of the label's
proportion, which is 0.1 without a liar.
"""

import argparse
import logging
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np

from common.domain import Record
from common.phrases import percent
from common.plan.planned import PlannedQuery
from common.queries.class_sums import ClassSumsSpec
from common.queries.votes import VotesSpec
from server.documents.metrics import Metrics
from server.operators.class_sums import NoisySums, Subspace, estimates
from server.operators.selection import top_per_label
from server.prepare.compose import compose_settings
from server.settings.schema import SimulationSettings
from simulations import run
from simulations.federation import parties
from simulations.laboratory.audit.federation import plan_of
from simulations.laboratory.output import show

HOSPITALS = 10
TIMES = (1, 10)
"""Numbers of false records that are tried, as multiples of an honest hospital's number of records."""
METHODS = {
    "wasp": ["method.samples=600"],
    "pre_text": ["method.samples=600"],
    "aug_pe": ["method.samples=200"],
    "dpga": ["method.samples=200", "method.rounds=4"],
    "class_sums": ["method.samples=600"],
}
"""Settings of the methods that are tried, keyed by method; their statistics are sums over hospitals and need no further
file."""
LABELS, EXEMPLARS, DIRECTIONS = 10, 8, 32


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="liar", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--records", type=int, nargs="+", default=[100, 1000], help="of all ten hospitals")
    parser.add_argument("--epsilon", type=float, default=4.0)
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    show("method   records  accuracy  points lost, 1 x  10 x\n")
    for method in METHODS:
        for records in options.records:
            honest, *lied = (
                statistics.mean(
                    accuracy(method, records, options.epsilon, times, seed) for seed in range(options.seeds)
                )
                for times in (0, *TIMES)
            )
            lost = "".join(f"{100 * (honest - accuracy_of_lie):10.1f}" for accuracy_of_lie in lied)
            show(f"{method:9}{records:7}{percent(honest):>10}{lost}\n")
    show("\nchosen by    records  false  exemplars; or the mean's move and the label's share\n")
    for records in options.records:
        for times in TIMES:
            share = liars_share(records, options.epsilon, times)
            show(f"votes      {records:9}{times:5} x  {share:.2f} of {EXEMPLARS}\n")
        for times in TIMES:
            moved, share = mean(records, options.epsilon, times)
            show(f"class sums {records:9}{times:5} x  {moved:.2f} radii, {share:.2f}\n")
    return 0


def accuracy(method: str, records: int, epsilon: float, times: int, seed: int) -> float:
    """Return the accuracy if the first hospital has `times` mislabelled copies of each record; 0 means no lie."""
    overrides = {
        "federation.parties": HOSPITALS,
        "federation.records": records,
        "federation.max_records": max(TIMES) * records // HOSPITALS,
        "privacy.epsilon": epsilon,
        "experiment_seed": seed,
        "evaluation.metrics": "[utility]",
    }
    deal = parties.deal

    def lying(settings: SimulationSettings) -> list[list[Record]]:
        first, *others = deal(settings)
        return [mislabel_records(first) * times if times else first, *others]

    with tempfile.TemporaryDirectory() as folder, mock.patch.object(parties, "deal", lying):
        run.simulate(
            compose_settings(
                [f"method={method}", *METHODS[method], *(f"{name}={value}" for name, value in overrides.items())]
            ),
            Path(folder),
        )
        accuracy = Metrics.load(Path(folder)).figure("synthetic", "accuracy").value
    assert accuracy is not None
    return accuracy


def mislabel_records(records: Sequence[Record]) -> list[Record]:
    """Return each record with its label replaced by the next label in sorted order."""
    labels = sorted({record.label for record in records})
    following = dict(zip(labels, [*labels[1:], labels[0]], strict=True))
    return [replace(record, label=following[record.label]) for record in records]


def liars_share(records: int, epsilon: float, times: int, *, candidates: int = 300, trials: int = 200) -> float:
    """Return the mean fraction of a label's exemplars that the liar chose beforehand, if others vote at random."""
    spec = VotesSpec(top=8, furthest=False)
    noise = _noise(PlannedQuery(name="votes", spec=spec), epsilon)
    generator, weights = np.random.default_rng(0), spec.grid / 2.0 ** np.arange(spec.top)
    size, share = candidates // LABELS, []
    for _ in range(trials):
        votes, named = generator.normal(scale=noise, size=size), generator.permutation(size)[:EXEMPLARS]
        for _ in range(records // LABELS):
            votes[generator.permutation(size)[: spec.top]] += weights
        # The liar's records all have this label, and take turns in the order in which they name its candidates.
        votes[named] += times * (records // HOSPITALS) * weights.sum() / len(named)
        (chosen,) = top_per_label(votes, np.zeros(size, dtype=np.int64), EXEMPLARS, 1)
        share.append(len(set(chosen) & set(named)) / EXEMPLARS)
    return statistics.mean(share)


def mean(records: int, epsilon: float, times: int, *, trials: int = 50) -> tuple[float, float]:
    """Return how far the liar moves one label's estimated mean, in radii, and the label's estimated proportion."""
    spec = ClassSumsSpec(labels=LABELS, directions=DIRECTIONS, count=256)
    noise = _noise(PlannedQuery(name="class sums", spec=spec), epsilon)
    generator = np.random.default_rng(0)
    space = Subspace(
        basis=np.eye(DIRECTIONS, dtype=np.float32), centres=np.zeros((LABELS, DIRECTIONS), np.float32), radius=1.0
    )
    moves, shares, of_label, false = [], [], records // LABELS, times * records // HOSPITALS
    for _ in range(trials):
        offsets = _directions(generator, LABELS) * 0.4
        sums = of_label * offsets + generator.normal(size=(LABELS, DIRECTIONS)) * noise / spec.grid
        counts = of_label + generator.normal(size=LABELS) * noise / spec.count
        lied, more = sums.copy(), counts.copy()
        lied[0] += false * _directions(generator, 1)[0]
        more[0] += false
        before, after = (
            estimates(
                NoisySums(
                    labels=tuple(map(str, range(LABELS))),
                    subspace=space,
                    softness=0.05,
                    sums=totals,
                    counts=numbers,
                    noise=noise / spec.grid,
                    count_noise=noise / spec.count,
                )
            )
            for totals, numbers in ((sums, counts), (lied, more))
        )
        moves.append(float(np.linalg.norm(after.means[0] - before.means[0])))
        shares.append(float(after.shares[0]))
    return statistics.mean(moves), statistics.mean(shares)


def _noise(query: PlannedQuery, epsilon: float) -> float:
    """Return the standard deviation of the noise in each coordinate of a sum, in grid units, without colluders."""
    plan = plan_of(epsilon, (query,), labels=tuple(map(str, range(LABELS))), parties=HOSPITALS)
    return plan.queries[0].scale


def _directions(generator: np.random.Generator, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    rows = generator.normal(size=(count, DIRECTIONS))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


if __name__ == "__main__":
    sys.exit(main())
