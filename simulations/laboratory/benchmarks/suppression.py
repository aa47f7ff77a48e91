r"""Time and memory for similarity suppression, compared with the plain definition.

    OMP_NUM_THREADS=2 python -m simulations.laboratory.benchmarks.suppression \
        [--candidates 10000] [--elites 2000] [--dimensions 768]

Candidates lie around centres, like the offspring of elites: closely around few centres, or loosely around many centres.
Votes are noise; tau starts at the mean similarity of the population. The table shows the wall-clock and CPU time of one
run each, and the peak memory of the process. The plain definition computes the whole matrix of cosines again for each
tau; both implementations are run on a population of a tenth of the size, and their elites are compared.
"""

import argparse
import resource
import sys
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from server.operators.suppression import Elites, self_similarity, suppress
from simulations.laboratory.benchmarks.ratios import Ratio, benchmark
from simulations.laboratory.benchmarks.timing import timed

_POPULATIONS = {"tight": (0.05, 0.5), "loose": (0.25, 0.3), "no centres": (1.0, 0.0)}
"""Number of centres per candidate, and spread of candidates around a centre, keyed by the population's name."""


def main(arguments: Sequence[str] | None = None) -> list[Ratio]:
    """Print the table; return, for each population, our time divided by the time for the plain definition."""
    parser = argparse.ArgumentParser(prog="bench_suppression", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--elites", type=int, default=2000)
    parser.add_argument("--dimensions", type=int, default=768)
    options = parser.parse_args(arguments)
    sys.stdout.write(
        f"{'population':12}{'candidates':>11}{'way':>8}{'tau from':>10}{'to':>7}{'wall s':>8}{'CPU s':>8}\n"
    )
    same, ratios = True, []
    for name in _POPULATIONS:
        for part in (1, 10):
            n, count = options.candidates // part, options.elites // part
            votes, vectors = population(name, n, options.dimensions)
            start = self_similarity(vectors) or 0.0
            task = (votes, vectors, count)
            ours, seconds = _line(name, "ours", task, start)
            if part > 1:
                plainly, longer = _line(name, "plain", task, start)
                same &= ours.positions.tolist() == plainly.positions.tolist()
                ratios.append(Ratio(name=name, to="plain definition", value=seconds / longer))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(f"the same elites both ways: {'yes' if same else 'NO'}; peak memory {peak:.0f} MiB\n")
    return ratios


def population(name: str, n: int, dimensions: int) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Return (n,) random votes and (n, dimensions) unit vectors of the population of this name."""
    rng = np.random.default_rng(0)
    share, spread = _POPULATIONS[name]
    centres = rng.normal(size=(max(1, round(share * n)), dimensions))
    rows = centres[rng.integers(len(centres), size=n)] + spread * rng.normal(size=(n, dimensions))
    rows += rng.normal(size=dimensions)  # sentence embeddings share a direction
    return rng.normal(size=n), (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def plain(votes: NDArray[np.float64], vectors: NDArray[np.float32], count: int, *, tau: float) -> Elites:
    """Return the elites by the paper's definition, with a self-similarity matrix for each tau and a loop over it."""
    order = np.argsort(-votes, kind="stable")
    steps = 0
    while True:
        threshold = min(1.0, tau + steps * 0.01)
        alike = (wide := vectors.astype(np.float64)[order]) @ wide.T > threshold
        chosen: list[int] = []
        remaining = np.ones(len(order), dtype=bool)
        for place in range(len(order)):
            if remaining[place] and len(chosen) < count:
                chosen.append(place)
                remaining &= ~alike[place]
        if len(chosen) == min(count, len(order)):
            return Elites(positions=order[chosen], tau=threshold)
        steps += 1


def _line(
    name: str, way: str, task: tuple[NDArray[np.float64], NDArray[np.float32], int], tau: float
) -> tuple[Elites, float]:
    start = time.monotonic()
    elites, milliseconds = timed(suppress if way == "ours" else plain, *task, tau=tau)
    wall = time.monotonic() - start
    sys.stdout.write(
        f"{name:12}{len(task[0]):11}{way:>8}{tau:10.3f}{elites.tau:7.3f}{wall:8.2f}{milliseconds / 1000:8.2f}\n"
    )
    return elites, milliseconds / 1000


if __name__ == "__main__":
    benchmark(main)
