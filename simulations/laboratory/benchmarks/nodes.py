r"""Real nodes over lines of several delays: the time of a phase, compared with the sum of `laboratory/nodes/cost.py`.

    OMP_NUM_THREADS=1 python -m simulations.laboratory.benchmarks.nodes \
        [--nodes 2 6] [--queries 2] [--delays 0.02 0.1 0.3] [--megabits 10]

Two federations of different sizes on this machine each make one run of WASP. In the larger one the line changes between
queries: no delay, the longest delay, the other delays, and the second longest delay (or the only one) with a limited
rate. The work per node is computed from the two sizes, and the round trips from the longest delay. The times for all
other lines are predicted. One query after each change is not counted. The nodes' own work is part of the work per node
here, but would not be on separate machines.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from simulations.laboratory.benchmarks.ratios import Ratio, benchmark
from simulations.laboratory.nodes.cost import Cost, phases
from simulations.laboratory.nodes.deployment import wait
from simulations.laboratory.nodes.federation import Nodes, small_run
from simulations.laboratory.nodes.line import Line
from simulations.laboratory.nodes.usage import cpu, descendants, proportional_set

PHASES = 3
"""Number of phases in a query: ask, agree, unmask."""
COORDINATOR = ("superlink", "executor", "front_door")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A section of a run over a network link whose delay and rate stay fixed, with its measured costs.

    Attributes:
        delay: Duration of a round trip, in seconds.
        rate: Bytes per second of the link; None for no limit.
        phase: Duration of a phase, in seconds.
        bytes: Bytes per node and phase, in the busier direction.
        coordinator: CPU time, in seconds, of all processes of the coordinator per phase.
        hospital: CPU time, in seconds, of a hospital's processes per phase.
    """

    delay: float
    rate: float | None = None
    phase: float = 0.0
    bytes: float = 0.0
    coordinator: float = 0.0
    hospital: float = 0.0

    def __str__(self) -> str:
        """Return the delay and rate as text."""
        return f"{1000 * self.delay:.0f} ms" + (f", {self.rate * 8 / 1e6:g} Mbit/s" if self.rate else "")

    @property
    def parts(self) -> str:
        """The measurements as text."""
        return (
            f"{self.phase:.2f} s a phase, {self.bytes / 1e3:.0f} kB a node; CPU seconds: coordinator "
            f"{self.coordinator:.2f}, a hospital {self.hospital:.2f}"
        )


def main(arguments: Sequence[str] | None = None) -> list[Ratio]:
    """Print a row for each line; return the ratios of measured to predicted times for the predicted lines."""
    parser = argparse.ArgumentParser(prog="nodes", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs=2, default=[2, 6])
    parser.add_argument("--queries", type=int, default=2)
    parser.add_argument("--delays", type=float, nargs="+", default=[0.02, 0.1, 0.3])
    parser.add_argument("--megabits", type=float, default=10.0)
    options = parser.parse_args(arguments)
    *others, longest = sorted(options.delays)
    if longest <= 0:
        parser.error("--delays: expected one above 0")
    few, many = options.nodes
    lines = [Stretch(delay=delay) for delay in (0.0, longest, *others)]
    lines.append(Stretch(delay=lines[-1].delay, rate=options.megabits * 1e6 / 8))
    with tempfile.TemporaryDirectory() as folder:
        (small,), _ = measure(Path(folder) / "few", few, options.queries, lines[:1])
        measured, start = measure(Path(folder) / "many", many, options.queries, lines)
    cost = terms(small, *measured[:2], few=few, many=many, start=start)
    sys.stdout.write(f"{cost}\n{'':>24}{'measured':>10}{'predicted':>10}{'ratio':>8}\n")
    ratios = []
    for stretch in measured:
        adjusted = replace(cost, bytes=stretch.bytes)  # later queries have more candidates
        predicted = adjusted.phase(nodes=many, delay=stretch.delay, rate=stretch.rate or float("inf"))
        ratio = Ratio(name=f"a phase at {stretch}", to="predicted", value=stretch.phase / predicted)
        sys.stdout.write(f"{stretch!s:>24}{stretch.phase:10.2f}{predicted:10.2f}{ratio.value:8.2f}\n")
        ratios.append(ratio)
    alone = max(0.0, (measured[0].coordinator - small.coordinator) / (many - few))
    for where, terms_there in (("here", cost), ("on separate machines", replace(cost, work=alone))):
        seconds = terms_there.run(phases(10), nodes=50, delay=0.1, rate=10e6 / 8)
        sys.stdout.write(f"50 hospitals, 10 queries, 100 ms, 10 Mbit/s, {where}: {seconds:.0f} s\n")
    return ratios[2:]


def terms(small: Stretch, quick: Stretch, slow: Stretch | None, *, few: int, many: int, start: float) -> Cost:
    """Return the terms of the cost, computed from stretches with few nodes, with more nodes, and with a delay.

    Args:
        small: Stretch with few nodes and without a delay.
        quick: Stretch with many nodes and without a delay.
        slow: Stretch with many nodes and a delay; with None, the round trips are 0.
        few: Number of nodes of the small federation.
        many: Number of nodes of the large federation.
        start: Seconds before the first phase and after the last.
    """
    work = max(0.0, (quick.phase - small.phase) / (many - few))
    return Cost(
        wait=max(0.0, quick.phase - many * work),
        trips=max(0.0, slow.phase - quick.phase) / slow.delay if slow else 0.0,
        bytes=quick.bytes,
        work=work,
        start=start,
    )


def measure(folder: Path, count: int, queries: int, stretches: Sequence[Stretch]) -> tuple[list[Stretch], float]:
    """Make one run over these stretches; return their costs, and the seconds before the first and after the last phase.

    Args:
        folder: A new folder for the nodes.
        count: Number of hospitals.
        queries: Number of measured queries in each stretch.
        stretches: The stretches, in order of use.
    """
    line = Line()
    with Nodes(folder, count, line=line) as nodes:
        nodes.up()
        say_memory(nodes.processes(), count)
        began = time.time()
        queries_per_stretch = queries + 1
        rounds = queries_per_stretch * len(stretches) + 2
        nodes.begin("run", *small_run(rounds))
        measured = []
        for number, stretch in enumerate(stretches):
            _time_of_answer(nodes, number * queries_per_stretch)
            line.delay, line.rate = stretch.delay, stretch.rate
            begun = _time_of_answer(nodes, number * queries_per_stretch + 1)
            before, passed = spent(nodes), dict(line.passed)
            took = _time_of_answer(nodes, (number + 1) * queries_per_stretch) - begun
            after = spent(nodes)
            measured.append(
                replace(
                    stretch,
                    phase=took / queries / PHASES,
                    bytes=max(line.passed[way] - passed[way] for way in passed) / count / queries / PHASES,
                    coordinator=(after["coordinator"] - before["coordinator"]) / queries / PHASES,
                    hospital=(after["hospitals"] - before["hospitals"]) / count / queries / PHASES,
                )
            )
            sys.stdout.write(f"{count} hospitals: {measured[-1]}: {measured[-1].parts}\n")
            sys.stdout.flush()
        line.delay, line.rate = 0.0, None
        code, said = nodes.finish("run")
        if code:
            raise RuntimeError(said)
        times = [when for _, when in nodes.requests(0, "run")]
        start = times[0] - began + time.time() - times[-1]
    return measured, start


def _time_of_answer(nodes: Nodes, number: int) -> float:
    """Wait until the first hospital has answered query `number` (from 0); return `time.monotonic()` at that time.

    Raises:
        RuntimeError: The run has already ended; the message contains its output.
    """

    def answered() -> bool:
        answers = sum(request == "Ask" for request, _ in nodes.requests(0, "run")) > number
        if not answers and not nodes.is_running("run"):
            raise RuntimeError(nodes.finish("run")[1])
        return answers

    wait(answered, f"query {number} is answered", every=0.02)
    return time.monotonic()


def spent(nodes: Nodes) -> dict[str, float]:
    """Return the CPU seconds used so far by the coordinator's processes, including the run's, and by the hospitals'."""
    running = nodes.processes()
    coordinator = [process for name in COORDINATOR for process in running[name]]
    hospitals = [process for name, processes in running.items() if name not in COORDINATOR for process in processes]
    return {"coordinator": cpu({*coordinator, *descendants(running["executor"])}), "hospitals": cpu(hospitals)}


def say_memory(processes: Mapping[str, Sequence[int]], count: int) -> None:
    """Print the memory, in MiB, of a hospital and of each type of process; shared memory is counted once."""
    shares = {name: proportional_set(numbers) / 2**20 for name, numbers in processes.items()}
    hospital = sum(share for name, share in shares.items() if name not in COORDINATOR)
    parts = ", ".join(f"{name} {share / len(processes[name]):.0f}" for name, share in shares.items())
    sys.stdout.write(f"{count} hospitals: {hospital / count:.0f} MiB each; a process: {parts}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    benchmark(main)
