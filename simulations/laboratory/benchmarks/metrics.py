"""Time for the fidelity metrics on vectors of the usual size, relative to one matrix product.

    python -m simulations.laboratory.benchmarks.metrics [--rows 10000] [--dim 768]

Both sets are samples of one mixture of Gaussians, so they overlap as good synthetic texts would. The table shows CPU
seconds as well as wall-clock seconds, which mean little on a shared machine.
"""

import argparse
import resource
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from server.metrics import clusters, diversity, manifolds, transport
from server.metrics.fidelity import fid
from simulations.laboratory.benchmarks.ratios import Ratio, benchmark
from simulations.private_evaluation import attacks

_CENTRES = 40


def main(arguments: Sequence[str] | None = None) -> list[Ratio]:
    """Print a line for each metric and one for all metrics; return the times relative to a matrix product."""
    parser = argparse.ArgumentParser(prog="bench_metrics", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--dim", type=int, default=768)
    options = parser.parse_args(arguments)
    a, b = (_vectors(options.rows, options.dim, seed) for seed in (1, 2))
    sys.stdout.write(f"{options.rows} x {options.dim} float32 each; a product is that of the two matrices\n")
    _, product, _ = _timed(lambda: a @ b.T)
    measured: dict[str, Callable[[], object]] = {
        "FID": lambda: fid(a, b),
        "precision, recall, density, coverage": lambda: manifolds.overlap(a, b),
        "MAUVE, KL, total variation": lambda: clusters.divergences(a, b),
        "Wasserstein": lambda: transport.wasserstein(a, b),
        "Sinkhorn": lambda: transport.sinkhorn(a, b),
        "self-similarity, near duplicates": lambda: (
            diversity.self_similarity(a),
            diversity.duplicates([str(number) for number in range(len(a))], a),
        ),
        "nearest records": lambda: attacks.nearest(a, b, b[::-1]),
    }
    head = ("metric", "wall s", "cpu s", "products", "peak MiB")
    sys.stdout.write("{:38}{:>8}{:>8}{:>10}{:>10}\n".format(*head))
    total, ratios = np.zeros(2), []
    for name, compute in measured.items():
        wall, cpu, peak = _timed(compute)
        total += (wall, cpu)
        sys.stdout.write(f"{name:38}{wall:8.1f}{cpu:8.1f}{cpu / product:10.1f}{peak:10.0f}\n")
        ratios.append(Ratio(name=name, to="product", value=cpu / product))
    sys.stdout.write(f"{'all':38}{total[0]:8.1f}{total[1]:8.1f}{total[1] / product:10.1f}\n")
    return ratios


def _timed(compute: Callable[[], object]) -> tuple[float, float, float]:
    """Return the call's wall-clock and CPU time, in seconds, and the peak memory of this process so far, in MiB."""
    wall, cpu = time.perf_counter(), time.process_time()
    compute()
    seconds = time.perf_counter() - wall, time.process_time() - cpu
    return *seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _vectors(rows: int, dim: int, seed: int) -> NDArray[np.float32]:
    """Return (rows, dim) unit vectors around forty centres, with a decaying spectrum like that of embeddings."""
    centres = np.random.default_rng(0).normal(size=(_CENTRES, dim))
    rng = np.random.default_rng(seed)
    spectrum = 1.5 * np.exp(-np.arange(dim) / 100)
    vectors = centres[rng.integers(_CENTRES, size=rows)] + spectrum * rng.normal(size=(rows, dim))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


if __name__ == "__main__":
    benchmark(main)
