r"""One run over a large number of real hospitals, with its time predicted from runs with few hospitals, then measured.

    OMP_NUM_THREADS=1 python -m simulations.laboratory.benchmarks.many_nodes \
        [--hospitals 50] [--queries 3] [--delay 0.1] [--megabits 10] [--few 2 6]

Runs of two small federations yield the terms of `laboratory/nodes/cost.py`: the work per node from their difference in
size, and the round trips from the larger federation over this delay. Then the large federation makes one run of WASP,
entirely over the slow line. With a delay of 0 the line is loopback without a rate limit. `make bench` omits this
benchmark, since fifty hospitals take a quarter of an hour.
"""

import argparse
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from simulations.laboratory.benchmarks.nodes import Stretch, measure, say_memory, spent, terms
from simulations.laboratory.benchmarks.ratios import Ratio, benchmark
from simulations.laboratory.nodes.cost import Cost, phases
from simulations.laboratory.nodes.deployment import wait
from simulations.laboratory.nodes.federation import Nodes, small_run
from simulations.laboratory.nodes.line import Line
from simulations.laboratory.nodes.usage import descendants, proportional_set

_RUN = "run"
_LAST = "Close"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Time and traffic of one run.

    Attributes:
        seconds: Seconds from the start of the command to its end.
        phases: Request name and duration in seconds of each phase except the last, which has no known duration.
        bytes: Bytes per node and phase, in the busier direction.
    """

    seconds: float
    phases: tuple[tuple[str, float], ...]
    bytes: float

    @property
    def phase(self) -> float:
        """Mean duration of a phase in seconds."""
        return sum(seconds for _, seconds in self.phases) / len(self.phases)


def main(arguments: Sequence[str] | None = None) -> list[Ratio]:
    """Print the prediction, then the measurement; return the ratios of measured to predicted times."""
    parser = argparse.ArgumentParser(
        prog="many_nodes", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--hospitals", type=int, default=50)
    parser.add_argument("--queries", type=int, default=3)
    parser.add_argument("--delay", type=float, default=0.1)
    parser.add_argument("--megabits", type=float, default=10.0)
    parser.add_argument("--few", type=int, nargs=2, default=[2, 6])
    options = parser.parse_args(arguments)
    count, queries = options.hospitals, options.queries
    slow = Stretch(delay=options.delay, rate=options.megabits * 1e6 / 8 if options.delay else None)
    rate = slow.rate or float("inf")
    with tempfile.TemporaryDirectory() as folder:
        cost = fitted_cost(Path(folder), *options.few, delay=options.delay)
        phase = cost.phase(nodes=count, delay=slow.delay, rate=rate)
        run = cost.run(phases(queries), nodes=count, delay=slow.delay, rate=rate)
        sys.stdout.write(f"{cost}\npredicted: {run:.0f} s, {phase:.2f} s a phase\n")
        sys.stdout.flush()
        measured = whole(Path(folder) / "large", count, queries, slow)
    sys.stdout.write(
        f"measured: {measured.seconds:.0f} s, {measured.phase:.2f} s a phase, {measured.bytes / 1e3:.0f} kB a node\n"
        + "".join(f"{name:>12}{seconds:8.2f} s\n" for name, seconds in measured.phases)
    )
    what = f"{count} hospitals, {queries} queries, {slow}"
    return [
        Ratio(name=f"a run, {what}", to="predicted", value=measured.seconds / run),
        Ratio(name=f"a phase, {what}", to="predicted", value=measured.phase / phase),
    ]


def fitted_cost(folder: Path, few: int, many: int, *, delay: float) -> Cost:
    """Return the terms of the cost, measured with two small federations; without a delay the round trips are 0."""
    lines = [Stretch(delay=0.0), *([Stretch(delay=delay)] if delay else [])]
    (small,), _ = measure(folder / "few", few, 2, lines[:1])
    measured, start = measure(folder / "many", many, 2, lines)
    return terms(small, measured[0], measured[1] if delay else None, few=few, many=many, start=start)


def whole(folder: Path, count: int, queries: int, slow: Stretch) -> Measured:
    """Start `count` hospitals, make one run over a line like `slow`, and return the run's time and traffic.

    The memory and processor usage is printed.

    Raises:
        RuntimeError: The run failed; the message contains its output.
    """
    line, began = Line(), time.monotonic()
    with Nodes(folder, count, line=line) as nodes:
        made = time.monotonic()
        nodes.up()
        sys.stdout.write(f"{count} hospitals: enrolled {made - began:.0f} s, online {time.monotonic() - made:.0f} s\n")
        say_memory(nodes.processes(), count)
        idle = _processors(nodes, count, 10.0)
        line.delay, line.rate = slow.delay, slow.rate
        before, passed, start = spent(nodes), dict(line.passed), time.time()
        nodes.begin(_RUN, *small_run(queries + 1))
        again = 0

        def closing() -> bool:
            nonlocal again
            again += nodes.revive()
            if not nodes.is_running(_RUN):
                raise RuntimeError(nodes.finish(_RUN)[1])
            return any(request == _LAST for request, _ in nodes.requests(0, _RUN))

        wait(closing, "the run's end begins", patience=3600, every=0.5)
        after, took = spent(nodes), time.time() - start
        _say_run(nodes, after, before, took, idle)
        sys.stdout.write(f"hospitals' processes that ended and were started again: {again}\n")
        code, said = nodes.finish(_RUN)
        if code:
            raise RuntimeError(said)
        seconds = time.time() - start
        begun = phases_of([nodes.requests(number, _RUN) for number in range(count)])
        busier = max(line.passed[way] - passed[way] for way in passed)
    return Measured(seconds=seconds, phases=begun, bytes=busier / count / phases(queries))


def phases_of(requests: Sequence[Sequence[tuple[str, float]]]) -> tuple[tuple[str, float], ...]:
    """Return the request name of each phase except the last, and the seconds until the next phase begins.

    A phase begins with its first request to any hospital.

    Args:
        requests: Names of the requests to each hospital, with their times, in order.
    """
    # A hospital that missed a phase has fewer requests, which shall not cost the measurement.
    first = [min(phase, key=lambda request: request[1]) for phase in zip(*requests, strict=False)]
    return tuple((name, after - when) for (name, when), (_, after) in itertools.pairwise(first))


def _processors(nodes: Nodes, count: int, seconds: float) -> float:
    """Print the CPU load of an idle coordinator and of an idle hospital; return the load of all processes together."""
    before = spent(nodes)
    time.sleep(seconds)
    after = spent(nodes)
    coordinator, hospitals = ((after[name] - before[name]) / seconds for name in ("coordinator", "hospitals"))
    sys.stdout.write(f"idle, CPU seconds a second: coordinator {coordinator:.2f}, a hospital {hospitals / count:.3f}\n")
    return coordinator + hospitals


def _say_run(nodes: Nodes, after: dict[str, float], before: dict[str, float], took: float, idle: float) -> None:
    coordinator, hospitals = (after[name] - before[name] for name in ("coordinator", "hospitals"))
    running = nodes.processes()
    memory = proportional_set(descendants(running["executor"])) / 2**20
    databases = (nodes.here / "logs" / "superlink.log").read_text(encoding="utf-8").count("database is locked")
    sys.stdout.write(
        f"the run, CPU seconds: coordinator {coordinator:.0f}, all hospitals {hospitals:.0f}, of {took:.0f} s on "
        f"{os.cpu_count()} processors (idle {idle:.2f} a second); its process has {memory:.0f} MiB; "
        f"SuperLink's database was locked {databases} times\n"
    )
    say_memory(running, nodes.count)


if __name__ == "__main__":
    benchmark(main)
