"""How long a user waits at the start and the end of the demo, in CPU time relative to the import of torch.

    OMP_NUM_THREADS=1 python -m simulations.laboratory.benchmarks.startup [SETTING=VALUE ...]

The demo runs once, in a separate process that records its CPU time when round 1 has ended, when the evaluation begins
and when the demo is done. Without settings it is the demo of `make demo`. The goals are for a machine on which torch is
imported in 1.1 seconds, as on an idle core: round 1 in 5 s, an evaluation of 8 s, 18 s in total, a plan in 5 s, and
`--help` in six times the start-up time of Python itself. The demo multiplies matrices in one thread, so on an idle
machine its wall-clock time is about its CPU time.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from simulations.laboratory.benchmarks.ratios import Ratio, benchmark

ROUND, EVALUATION, DONE = MARKS = ("round 1 of ", "evaluating ", "done: ")
"""Parts of the log lines at which the demo's time is recorded."""

_PROBE = "import sys; from simulations.laboratory.benchmarks.startup import probe; probe(sys.argv.pop(1))"
_TORCH, _PYTHON = ("-c", "import torch"), ("-c", "pass")
_HELP = ("-m", "simulations.command", "--help")
_PLAN = ("-m", "server.command", "plan")
_RUNS = 3


def main(arguments: Sequence[str]) -> list[Ratio]:
    """Print the seconds; return the ratios."""
    bare, helped, torch = (min(cpu(code) for _ in range(_RUNS)) for code in (_PYTHON, _HELP, _TORCH))
    plan = cpu(_PLAN)
    with tempfile.TemporaryDirectory() as folder:
        noted = Path(folder) / "noted.json"
        cpu(("-c", _PROBE, str(noted), *arguments, f"hydra.run.dir={folder}/run"))
        at = json.loads(noted.read_text(encoding="utf-8"))
    seconds = {
        "bare Python": bare,
        "--help": helped,
        "import torch": torch,
        "plan": plan,
        "round 1": at[ROUND],
        "evaluation": at[DONE] - at[EVALUATION],
        "demo": at[DONE],
    }
    sys.stdout.writelines(f"{name:14}{value:7.2f} s of CPU\n" for name, value in seconds.items())
    ratios = [Ratio(name="--help", to="bare Python", value=helped / bare, goal=6)]
    goals = {"plan": 4.5, "round 1": 4.5, "evaluation": 7, "demo": 16}
    ratios += [Ratio(name=name, to="import torch", value=seconds[name] / torch, goal=goals[name]) for name in goals]
    sys.stdout.writelines(f"{ratio}\n" for ratio in ratios)
    return ratios


def cpu(arguments: Sequence[str]) -> float:
    """Run Python with these arguments; return its CPU time in seconds, including all of its threads and processes.

    Raises:
        CalledProcessError: The command failed.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=os.environ)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def probe(file: str) -> None:
    """Run `caucus-simulate` with the arguments of this process; write the CPU time at each mark to `file`."""
    at: dict[str, float] = {}
    for stream in (sys.stdout, sys.stderr):
        stream.write = _noting(stream.write, at)  # type: ignore[method-assign]
    from simulations.command import main as simulate

    simulate()
    Path(file).write_text(json.dumps(at), encoding="utf-8")


def _noting(write: Callable[[str], int], at: dict[str, float]) -> Callable[[str], int]:
    def noted(text: str) -> int:
        for mark in MARKS:
            if mark in text and mark not in at:
                at[mark] = time.process_time()
        return write(text)

    return noted


if __name__ == "__main__":
    benchmark(main)
