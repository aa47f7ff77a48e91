r"""The vote kernel compared with one raw float32 product, faiss, and the search of the private-evolution library.

    OMP_NUM_THREADS=1 python -m simulations.laboratory.benchmarks.votes \
        [--records 10000] [--candidates 6000] [--dimensions 768] [--top 8]

All implementations find the nearest candidates of each record on this processor. Our implementation also finds the
furthest candidates in the same pass, in an order that does not depend on rounding; faiss finds only the nearest. The
private-evolution library (microsoft/DPSDA, `pe/histogram/nearest_neighbor_backend`) searches with faiss if it is
installed: with IndexFlatL2 (here "faiss, l2") in its mode "l2", and with IndexFlatIP in the modes "ip" and "cos_sim".
Our search for only the nearest candidates is also compared with IndexFlatL2. Each ratio divides CPU times that are
measured alternately. Each time is the smallest of several, since other load only adds to it. The growth of the
process's peak memory in our first call is printed too.
"""

import argparse
import resource
import sys
from collections.abc import Callable, Sequence
from functools import partial

import faiss
import numpy as np
from numpy.typing import NDArray

from client.contributions.votes import votes_of
from common.queries.votes import Votes, VotesSpec
from simulations.laboratory.benchmarks.ratios import Ratio, benchmark, time_action

_TURNS = 5
_CENTRES = 40


def main(arguments: Sequence[str] | None = None) -> list[Ratio]:
    """Print a line for each type of vectors and each implementation; return the ratios."""
    parser = argparse.ArgumentParser(prog="bench_votes", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--candidates", type=int, default=6000)
    parser.add_argument("--dimensions", type=int, default=768)
    parser.add_argument("--top", type=int, default=8)
    options = parser.parse_args(arguments)
    sys.stdout.write(f"{options.records} records x {options.candidates} candidates x {options.dimensions} dimensions\n")
    ratios = []
    for kind, spread in (("independent", None), ("in clusters", 1.5)):
        records = random_vectors(options.records, options.dimensions, 1, spread)
        candidates = random_vectors(options.candidates, options.dimensions, 2, spread)
        ratios += bench(kind, records, candidates, options.top)
    return ratios


def bench(kind: str, records: NDArray[np.float32], candidates: NDArray[np.float32], top: int) -> list[Ratio]:
    """Time all implementations with these vectors and print the lines; return the ratios of our implementation."""
    both = partial(votes, records, candidates, top, furthest=True)
    scratch = _growth(both)
    kept = 4 * candidates.size / 2**20
    sys.stdout.write(f"vectors {kind}: peak grew by {scratch:.0f} MiB, {kept:.0f} of them a copy of the candidates\n")
    smallest = turns(
        lambda: records @ candidates.T,
        {
            "near and far, ours": both,
            "near, ours": partial(votes, records, candidates, top, furthest=False),
            "near, faiss, inner product": partial(_faiss, faiss.IndexFlatIP, records, candidates, top),
            "near, faiss, l2": partial(_faiss, faiss.IndexFlatL2, records, candidates, top),
        },
    )
    for way, value in smallest.items():
        sys.stdout.write(f"{way:34}{value:8.2f} products\n")
    ratios = [
        Ratio(name=f"{way}, {kind}", to="raw product", value=value, goal=1.25 if way == "near and far, ours" else None)
        for way, value in smallest.items()
        if "ours" in way
    ]
    beside = smallest["near, ours"] / smallest["near, faiss, l2"]
    return [*ratios, Ratio(name=f"near, ours against faiss, {kind}", to="faiss, l2", value=beside)]


def random_vectors(rows: int, dimensions: int, seed: int, spread: float | None) -> NDArray[np.float32]:
    """Return (rows, dimensions) unit vectors: around common centres with this spread, or independent for None."""
    made = np.random.default_rng(seed).normal(size=(rows, dimensions))
    if spread is not None:
        common = np.random.default_rng(0)
        centres = common.normal(size=(_CENTRES, dimensions))
        made = centres[common.integers(_CENTRES, size=rows)] + spread * np.exp(-np.arange(dimensions) / 100) * made
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), dtype=np.float32)


def votes(
    records: NDArray[np.float32], candidates: NDArray[np.float32], top: int, *, furthest: bool
) -> NDArray[np.int64]:
    """Return the records' votes for the candidates; all records and candidates have the same label."""
    spec = VotesSpec(top=top, furthest=furthest)
    query = Votes(spec=spec, vectors=candidates, labels=np.zeros(len(candidates), dtype=np.int32))
    return votes_of(query, records, np.zeros(len(records), dtype=np.int32))


def turns(product: Callable[[], object], ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return each function's smallest CPU time, relative to that of `product`; the two are measured alternately."""
    ratios = {}
    for name, way in ways.items():
        times = [(time_action(product)[1], time_action(way)[1]) for _ in range(_TURNS)]
        before, taken = map(min, zip(*times, strict=True))
        ratios[name] = taken / before
    return ratios


def _faiss(index: type, records: NDArray[np.float32], candidates: NDArray[np.float32], top: int) -> object:
    filled = index(candidates.shape[1])
    filled.add(candidates)
    return filled.search(records, top)


def _growth(action: Callable[[], object]) -> float:
    """Return the growth of the process's peak memory during the call, in MiB."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    action()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


if __name__ == "__main__":
    benchmark(main)
