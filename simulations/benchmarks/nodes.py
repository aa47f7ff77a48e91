r"""Real nodes over lines of several delays: what a phase takes, beside the sum of `simulations/nodes/cost.py`.

    OMP_NUM_THREADS=1 python -m simulations.benchmarks.nodes \
        [--nodes 4] [--queries 2] [--delays 0.02 0.1 0.3] [--megabits 10]

One run of WASP whose line gets slower from query to query: no delay, the longest one, the others, and the middle one
with a rate. Terms come from the first two; the others are predicted. One query after each change is not counted. All
nodes are on this machine, so that their work adds to the coordinator's here and would not elsewhere.
"""

import argparse
import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from simulations.benchmarks.ratios import Ratio, benchmark
from simulations.nodes.cost import Cost, phases
from simulations.nodes.federation import Nodes, proportional_set, wait
from simulations.nodes.line import Line

PHASES = 3
"""Of a query: ask, agree, unmask."""
COORDINATOR = ("superlink", "executor", "front_door")
_SETTINGS = (
    *("method=wasp", "method.samples=60", "method.top=3", "method.shots=4", "evaluation.metrics=[]"),
    *("task.records_per_party=16", "task.test_records=24", "task.public_notes=120", "privacy.epsilon=8"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Queries under one kind of line.

    Attributes:
        delay: Seconds of a round trip.
        rate: Bytes a second, or None.
        phase: Seconds of a phase, by the median query.
        bytes: Of a node and phase, in the busier direction.
        coordinator: CPU seconds of the coordinator's processes, of a node and phase.
        hospital: CPU seconds of a hospital's, of a phase.
    """

    delay: float
    rate: float | None
    phase: float = 0.0
    bytes: float = 0.0
    coordinator: float = 0.0
    hospital: float = 0.0

    def __str__(self) -> str:
        """The line, in words."""
        return f"{1000 * self.delay:.0f} ms" + (f", {self.rate * 8 / 1e6:g} Mbit/s" if self.rate else "")


def main(arguments: Sequence[str] | None = None) -> list[Ratio]:
    """Print a line for each delay; return measured by predicted times."""
    parser = argparse.ArgumentParser(prog="nodes", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--queries", type=int, default=2)
    parser.add_argument("--delays", type=float, nargs="+", default=[0.02, 0.1, 0.3])
    parser.add_argument("--megabits", type=float, default=10.0)
    options = parser.parse_args(arguments)
    *others, longest = sorted(options.delays)
    middle = Stretch(delay=others[-1], rate=options.megabits * 1e6 / 8)
    plain = [Stretch(delay=delay, rate=None) for delay in (0.0, longest, *others)]
    with tempfile.TemporaryDirectory() as folder:
        measured, start = measure(Path(folder) / "nodes", options.nodes, options.queries, [*plain, middle])
    cost = terms(measured[0], measured[1], nodes=options.nodes, start=start)
    sys.stdout.write(f"{cost}\n{'':>24}{'measured':>10}{'predicted':>10}{'ratio':>8}\n")
    ratios = []
    for stretch in measured:
        predicted = cost.phase(nodes=options.nodes, delay=stretch.delay, rate=stretch.rate or float("inf"))
        ratio = Ratio(name=f"a phase at {stretch}", to="predicted", value=stretch.phase / predicted)
        sys.stdout.write(f"{stretch!s:>24}{stretch.phase:10.2f}{predicted:10.2f}{ratio.value:8.2f}\n")
        ratios.append(ratio)
    apart = replace(cost, work=measured[0].coordinator)
    for where, each in (("here", cost), ("on machines of their own", apart)):
        seconds = each.run(phases(10), nodes=50, delay=0.1, rate=10e6 / 8)
        sys.stdout.write(f"50 hospitals, 10 queries, 100 ms, 10 Mbit/s, {where}: {seconds:.0f} s\n")
    return ratios[2:]


def terms(quick: Stretch, slow: Stretch, *, nodes: int, start: float) -> Cost:
    """The terms, of a stretch without and one with a delay; all processes share this machine's cores."""
    work = (quick.coordinator + quick.hospital) / (os.cpu_count() or 1)
    return Cost(
        wait=max(0.0, quick.phase - nodes * work),
        trips=(slow.phase - quick.phase) / slow.delay,
        bytes=quick.bytes,
        work=work,
        start=start,
    )


def measure(folder: Path, count: int, queries: int, stretches: Sequence[Stretch]) -> tuple[list[Stretch], float]:
    """One run; what each stretch took, and the seconds before its first phase and after its last."""
    line = Line()
    with Nodes(folder, count, line=line) as nodes:
        nodes.up()
        _say_memory(nodes.processes(), count)
        began = time.time()
        each = queries + 1
        following = nodes.begin("run", f"method.rounds={each * len(stretches) + 2}", *_SETTINGS)
        measured = []
        for number, stretch in enumerate(stretches):
            _wait_for_query(nodes, number * each)
            line.delay, line.rate = stretch.delay, stretch.rate
            _wait_for_query(nodes, number * each + 1)
            before = _spent(nodes), dict(line.passed)
            _wait_for_query(nodes, (number + 1) * each)
            asked = [when for request, when in nodes.requests(0, "run") if request == "Ask"]
            counted = itertools.pairwise(asked[number * each + 1 : (number + 1) * each + 1])
            times = [(later - earlier) / PHASES for earlier, later in counted]
            spent = {name: seconds - before[0][name] for name, seconds in _spent(nodes).items()}
            passed = max(total - before[1][way] for way, total in line.passed.items())
            units = count * queries * PHASES
            measured.append(
                replace(
                    stretch,
                    phase=statistics.median(times),
                    bytes=passed / units,
                    coordinator=spent["coordinator"] / units,
                    hospital=spent["hospitals"] / units,
                )
            )
        line.delay, line.rate = 0.0, None
        code, said = nodes.ended("run", following)
        if code:
            raise RuntimeError(said)
        times = [when for _, when in nodes.requests(0, "run")]
        start = times[0] - began + time.time() - times[-1]
    return measured, start


def _wait_for_query(nodes: Nodes, number: int) -> None:
    """Wait until the first hospital has answered the query of this number, from 0."""
    wait(lambda: sum(request == "Ask" for request, _ in nodes.requests(0, "run")) > number, f"query {number}", 600)


def _spent(nodes: Nodes) -> dict[str, float]:
    """CPU seconds of the coordinator's processes, its run's included, and of the hospitals', so far."""
    found = nodes.processes()
    own = [process for name in COORDINATOR for process in found[name]]
    hospitals = [process for name, processes in found.items() if name not in COORDINATOR for process in processes]
    return {"coordinator": _cpu({*own, *_descendants(found["executor"])}), "hospitals": _cpu(hospitals)}


def _cpu(processes: Iterable[int]) -> float:
    fields = (_stat(process) for process in processes)
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


def _descendants(parents: Iterable[int]) -> set[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        children.setdefault(int(_stat(int(entry.name))[1]), []).append(int(entry.name))
    found, left = set(), [*parents]
    while left:
        found.update(new := children.get(left.pop(), []))
        left += new
    return found


def _stat(process: int) -> list[str]:
    """Fields of a process from its state on; zeros if it has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return ["0"] * 50


def _say_memory(processes: Mapping[str, Sequence[int]], count: int) -> None:
    """Memory of a hospital and of the coordinator, in MiB; what is shared is counted once."""
    shares = {name: proportional_set(numbers) / 2**20 for name, numbers in processes.items()}
    hospital = sum(share for name, share in shares.items() if name not in COORDINATOR)
    parts = ", ".join(f"{name} {share / len(processes[name]):.0f}" for name, share in shares.items())
    sys.stdout.write(f"{count} hospitals: {hospital / count:.0f} MiB each; a process: {parts}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    benchmark(main)
