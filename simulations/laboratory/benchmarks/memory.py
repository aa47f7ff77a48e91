"""Memory of an idle hospital and an idle coordinator, relative to a Python process that has imported numpy.

    OMP_NUM_THREADS=1 python -m simulations.laboratory.benchmarks.memory [--records 1000]

One coordinator and one hospital are set up and started on this machine with the commands that an operator uses; the
records are notes from the demo, and the encoder hashes n-grams. Once the node is online, the memory of each process is
read from Linux's /proc (RSS, which counts shared memory for each process). The goals are for a machine on which Python
with numpy takes 27 MB: 300 MB for the party service, 1 GiB for all processes of the coordinator.
"""

import argparse
import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from common.system import processes
from server.tasks import demo_notes
from simulations.laboratory.benchmarks.ratios import Ratio, benchmark
from simulations.laboratory.nodes.deployment import Deployment

HOSPITAL = ("service", "supernode", "relay")
"""Names of the processes that `caucus-party start` starts, in the order of printing."""
_NUMPY = "import numpy; print(flush=True); input()"


def main(arguments: Sequence[str] | None = None) -> list[Ratio]:
    """Print the memory of each process; return the ratios."""
    parser = argparse.ArgumentParser(prog="memory", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--records", type=int, default=1000)
    options = parser.parse_args(arguments)
    numpy = idle_numpy()
    measured = {"numpy": numpy, **idle(options.records)}
    sys.stdout.writelines(f"{name:24}{size / 1e6:7.0f} MB\n" for name, size in measured.items())
    goals = {"service": 11.0, "hospital": None, "coordinator": 40.0}
    ratios = [Ratio(name=f"idle {name}", to="numpy", value=measured[name] / numpy, goal=goals[name]) for name in goals]
    sys.stdout.writelines(f"{ratio}\n" for ratio in ratios)
    return ratios


def idle_numpy() -> int:
    """Return the memory, in bytes, of an idle Python process that has imported numpy."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", _NUMPY], stdin=pipe, stdout=pipe) as process:
        assert process.stdout
        process.stdout.read(1)
        size = resident_set([process.pid])
        process.terminate()
    return size


def idle(records: int) -> dict[str, int]:
    """Return the bytes of memory of a hospital with `records` records and of its coordinator, by process name."""
    with tempfile.TemporaryDirectory() as folder, Deployment(Path(folder)) as deployment:
        deployment.make([demo_notes.private_notes(0, records, 0)])
        deployment.up()
        children = (processes.status(deployment.at(0), "service") or {})["children"]
        sizes = {name: resident_set([children[name]["process"]]) for name in HOSPITAL}
        for side, name in (("hospital", "h0"), ("coordinator", "coordinator")):
            process = deployment.running[name].pid
            sizes[side] = resident_set({process, *descendants([process])})
        return sizes


def descendants(parents: Iterable[int]) -> set[int]:
    """Return the IDs of the processes that these processes have started, directly or indirectly."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            parent = entry.read_text(encoding="utf-8").rpartition(")")[2].split()[1]
            children.setdefault(int(parent), []).append(int(entry.parent.name))
    started, left = set(), [*parents]
    while left:
        started.update(new := children.get(left.pop(), []))
        left += new
    return started


def resident_set(processes: Iterable[int]) -> int:
    """Return the memory of these processes in bytes; shared memory counts fully for each process (RSS)."""
    return sum(
        1024 * int(line.split()[1])
        for process in processes
        for line in Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
        if line.startswith("Rss:")
    )


if __name__ == "__main__":
    benchmark(main)
