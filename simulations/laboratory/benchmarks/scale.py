r"""How time, memory and disk space grow with the number of texts, of runs in a ledger, and of replies in a cache.

    OMP_NUM_THREADS=1 python -m simulations.laboratory.benchmarks.scale \
        [--texts 3000 30000] [--runs 100 10000] [--replies 1000 100000] [--dimensions 384]

Each part is measured at two sizes. Its cost per text, run or reply at the larger size is divided by its cost at the
smaller size: the quotient is about 1 if the total cost grows linearly, and the ratio of the sizes if it grows
quadratically. The time of an answer over a long ledger, and of a look-up in a large cache, should not grow at all.
Times are CPU seconds of this process. Peak memory is the allocation of Python and numpy for the part itself
(tracemalloc), without its input.

The full sizes are `--texts 10000 100000 --runs 100 10000 --replies 1000 1000000`, which need about 3 GB of disk in the
folder for temporary files. An answer comprises all steps of a party's ledger for a query: charge, keep, survivors,
close, and the ledger's head before and after.
"""

import argparse
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.ledger.file import LedgerFile
from common.ledger.ledger import Ledger
from common.ledger.log import Entry, Log
from common.models.encoder import Encoder
from common.privacy.accountant import Release, epsilon
from common.privacy.sensitivity import Sensitivity
from common.rng import secure_bytes
from server.evaluation.projection import synthetic_map
from server.llm.base import Arrived, Reply, Request
from server.llm.cache import Cached
from server.metrics import diversity
from server.metrics.fidelity import fid
from server.vector_cache import Remembered
from simulations.laboratory.benchmarks import parties
from simulations.laboratory.benchmarks.ratios import Ratio, benchmark
from simulations.laboratory.benchmarks.timing import timed

_REAL = 1000
_ANSWERS = 20
_QUERIES = 4
_BATCH = 500
_RELEASE = Release(mechanism="gaussian", sensitivity=Sensitivity(l1=510, l2_squared=43_690, touched=16), scale=2000.0)


def main(arguments: Sequence[str] | None = None) -> list[Ratio]:
    """Print a line for each part and size; return how the cost of each part grows."""
    parser = argparse.ArgumentParser(prog="bench_scale", description=__doc__.split("\n", 1)[0])
    for name, sizes in (("texts", (3000, 30_000)), ("runs", (100, 10_000)), ("replies", (1000, 100_000))):
        parser.add_argument(f"--{name}", type=int, nargs=2, default=sizes, metavar=("FEW", "MANY"))
    parser.add_argument("--dimensions", type=int, default=384)
    options = parser.parse_args(arguments)
    sys.stdout.write(f"{'part':36}{'of':>9} {'CPU ms':>10}{'us of each':>12}{'peak MB':>9}{'bytes of each':>15}\n")
    return [
        *(ratio for part in _PARTS for ratio in _of_texts(part, options.texts, options.dimensions)),
        *_of_ledgers(options.runs),
        *_of_replies(options.replies),
        *_of_vectors(options.replies, options.dimensions),
    ]


def _query(texts: list[str], vectors: NDArray[np.float32]) -> object:
    """Ask three parties in this process one query of votes on `len(texts)` candidates, which are first embedded."""
    encoder = Encoder.hashed_ngrams(dimensions=vectors.shape[1], bits=12)
    return parties.measure(3, "semi_honest", encoder, len(texts))


_PARTS: dict[str, Callable[[list[str], NDArray[np.float32]], object]] = {
    "FID": lambda _, vectors: fid(vectors, _unit(_REAL, vectors.shape[1], 1)),
    "self-similarity, duplicates": lambda texts, vectors: (
        diversity.self_similarity(vectors),
        diversity.duplicates(texts, vectors),
    ),
    "distinct 3-grams": lambda texts, _: diversity.distinct(texts, 3),
    "map": lambda _, vectors: synthetic_map(vectors),
    "query to three parties": _query,
}


def _of_texts(part: str, sizes: Sequence[int], dimensions: int) -> list[Ratio]:
    few, many = sizes
    _PARTS[part](_texts(100), _unit(100, dimensions, 0))  # what is imported or built once
    costs = [_cost(part, size, dimensions) for size in sizes]
    names = ("CPU a text", "peak bytes a text")
    return [
        Ratio(name=f"{name}, {part}, {many} texts", to=f"{few} texts", value=large / small)
        for name, small, large in zip(names, *costs, strict=True)
    ]


def _cost(part: str, size: int, dimensions: int) -> tuple[float, float]:
    """Return the CPU time in milliseconds and the peak bytes for a part, both per text; also print the line."""
    texts, vectors = _texts(size), _unit(size, dimensions, 0)
    _, milliseconds = timed(_PARTS[part], texts, vectors)
    peak = _peak(lambda: _PARTS[part](texts, vectors))
    _line(part, size, milliseconds, per_item=1000 * milliseconds / size, peak=peak)
    return milliseconds / size, peak / size


def _of_ledgers(sizes: Sequence[int]) -> list[Ratio]:
    few, many = sizes
    costs = [_ledger(runs) for runs in sizes]
    names = ("CPU a run, opening a ledger", "CPU, an answer with a ledger", "CPU a run, epsilon of a ledger")
    return [
        Ratio(name=f"{name} of {many} runs", to=f"{few} runs", value=large / small)
        for name, small, large in zip(names, *costs, strict=True)
    ]


def _ledger(runs: int) -> tuple[float, float, float]:
    """Return the CPU times in milliseconds to open a ledger (per run), for one answer, and for epsilon (per run)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        _write_ledger(path, runs)
        size = path.stat().st_size
        ledger, opening = timed(Ledger, path, durable=False)
        _, answers = timed(_answer_all, ledger)
        _, spent = timed(lambda: epsilon((entry.cost for entry in ledger.entries()), 1e-5))
        peak = _peak(lambda: Ledger(path, durable=False).entries())
        _line("ledger: open and check", runs, opening, per_item=1000 * opening / runs, peak=peak)
        _line("ledger: an answer", runs, answers / _ANSWERS)
        _line("ledger: epsilon of all", runs, spent, per_item=1000 * spent / runs)
        _disk("ledger", runs, size)
    return opening / runs, answers / _ANSWERS, spent / runs


def _write_ledger(path: Path, runs: int) -> None:
    """Write a ledger of finished runs, in one transaction."""
    with LedgerFile(path, secret=secure_bytes(32), durable=False).transaction(write=True) as database:
        log = Log(database, path)
        for place in ((f"run {number:028}", index) for number in range(runs) for index in range(_QUERIES)):
            log.charge(database, _entry(*place))
            log.survivors(database, log.entries[place], [0, 1, 2])
            log.close(database, log.entries[place])


def _entry(run: str, index: int) -> Entry:
    return Entry(
        run=run,
        index=index,
        plan_digest=bytes(32),
        query_digest=secure_bytes(32),
        release=_RELEASE,
        charged="2026-01-01T00:00:00+00:00",
    )


def _answer_all(ledger: Ledger) -> None:
    for index in range(_ANSWERS):
        ledger.head()
        ledger.reserve(
            run="now",
            index=index,
            plan_digest=bytes(32),
            query_digest=bytes(32),
            release=_RELEASE,
            allow=_spent,
        )
        ledger.keep("now", index, bytes(16_000))
        ledger.survivors("now", index, {0, 1, 2})
        ledger.commit("now", index)
        ledger.head()


def _spent(charges: tuple[Release, ...]) -> None:
    """Compute the epsilon of all charges, as a party with a limit does; here there is no limit."""
    epsilon(charges, 1e-5)


class _Writer:
    """A language model in this process that replies without delay; each reply has five texts of 300 characters."""

    name = identity = "benchmark"
    remote = False
    declines: frozenset[str] = frozenset()

    def check(self) -> None:
        """Do nothing."""

    def generate(self, requests: Sequence[Request], *, arrived: Arrived | None = None) -> list[Reply]:
        """Return the replies (see `server.llm.base.Provider`)."""
        replies = [Reply(texts=("x" * 300,) * 5, input_tokens=300, output_tokens=300) for _ in requests]
        for place, reply in enumerate(replies):
            if arrived:
                arrived(place, reply)
        return replies

    def estimate(self, _: Request) -> tuple[int, int]:
        """Return the expected input and output tokens (see `server.llm.base.Provider`)."""
        return 300, 300


def _of_replies(sizes: Sequence[int]) -> list[Ratio]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "replies.db"
        cached = Cached(provider=_Writer(), path=path)
        return _grown("replies", sizes, path, lambda numbers: cached.generate([_request(number) for number in numbers]))


def _request(number: int) -> Request:
    return Request(task_kind="note", labels=(("a", ""), ("b", "")), label="a", n=5, seed=number)


class _Vectors(Encoder):
    """An encoder that takes no time and returns the same vector for all texts."""

    def __init__(self, dimensions: int) -> None:
        self._vector = _unit(1, dimensions, 0)

    @property
    def dimensions(self) -> int:
        """Number of dimensions of a vector."""
        return int(self._vector.shape[1])

    digest = "benchmark"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vector for each text (see `common.models.encoder.Encoder`)."""
        return np.repeat(self._vector, len(texts), axis=0)


def _of_vectors(sizes: Sequence[int], dimensions: int) -> list[Ratio]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.db"
        cached = Remembered(_Vectors(dimensions), path)
        return _grown("vectors", sizes, path, lambda numbers: cached.encode([f"text {number}" for number in numbers]))


def _grown(what: str, sizes: Sequence[int], path: Path, ask: Callable[[range], object]) -> list[Ratio]:
    """Fill a cache to both sizes; return the ratios of the times for insertions, and for look-ups, at these sizes.

    Only the last insertions are timed, and look-ups of the same number of entries from all parts of the cache.
    """
    costs: list[tuple[float, float]] = []
    size_before = 0
    for size in sizes:
        batch = min(_BATCH, sizes[0])
        for first in range(size_before, size - batch, batch):
            ask(range(first, min(first + batch, size - batch)))
        _, insertion = timed(ask, range(size - batch, size))
        _, look_up = timed(ask, range(0, size, size // batch))
        size_before = size
        for name, milliseconds in (("insertion", insertion), ("look-up", look_up)):
            _line(f"cache of {what}: {name} of {batch}", size, milliseconds, per_item=1000 * milliseconds / batch)
        _disk(f"cache of {what}", size, sum(file.stat().st_size for file in path.parent.iterdir()))
        costs.append((insertion, look_up))
    return [
        Ratio(name=f"CPU, {name} with {sizes[1]} {what}", to=f"{sizes[0]} {what}", value=large / small)
        for name, small, large in zip(("insertion", "look-up"), *costs, strict=True)
    ]


def _texts(size: int) -> list[str]:
    """Return `size` texts of 40 random words each, drawn from 5,000 different words."""
    words = np.random.default_rng(0).integers(5000, size=(size, 40))
    return [" ".join(f"w{word}" for word in row) for row in words.tolist()]


def _unit(rows: int, dimensions: int, seed: int) -> NDArray[np.float32]:
    vectors = np.random.default_rng(seed).standard_normal((rows, dimensions), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def _peak(action: Callable[[], object]) -> int:
    """Return the peak number of bytes that Python and numpy allocate during the call, beyond those allocated before."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _line(part: str, size: int, milliseconds: float, *, per_item: float | None = None, peak: int | None = None) -> None:
    cells = f"{milliseconds:10.1f}" + (" " * 12 if per_item is None else f"{per_item:12.1f}")
    memory = "" if peak is None else f"{peak / 1e6:9.1f}{peak / size:15.0f}"
    sys.stdout.write(f"{part:36}{size:9} {cells}{memory}\n")
    sys.stdout.flush()


def _disk(what: str, size: int, disk: int) -> None:
    sys.stdout.write(f"{what + ': MB of disk':36}{size:9} {'':22}{disk / 1e6:9.1f}{disk / size:15.0f}\n")


if __name__ == "__main__":
    benchmark(main)
