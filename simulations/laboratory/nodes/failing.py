r"""Real hospitals that fail at random in each phase, compared with `dropouts.py`, which simulates them in one process.

    OMP_NUM_THREADS=1 python -m simulations.laboratory.nodes.failing [--parties 10] [--kinds away gone] \
        [--rates 0.01 0.05 0.2] [--spares 0.1] [--retries 1] [--runs 10] [--timeout 30]

The hospitals' processes are those of `federation.py`; the runs have two queries with few candidates. When a message
comes to a hospital's relay, the relay stops itself (SIGSTOP) with the given probability, before it passes the message
on. A hospital that is `away` continues one second after `federation.timeout`, and then answers too late. If it is
`gone`, all of its processes are killed (SIGKILL). Before the next run, all hospitals are running again. The lost
seconds are the duration of a complete run with faults minus the duration of a run without faults. They are also
predicted, from the waits for the timeout and the repeated phases.
"""

import argparse
import itertools
import json
import logging
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from flwr.app import Context, Message

from client.app import app
from client.flower import relay
from simulations.laboratory.nodes.cost import phases
from simulations.laboratory.nodes.deployment import wait
from simulations.laboratory.nodes.dropouts import KINDS, QUERIES, Ending, Faults, ended
from simulations.laboratory.nodes.federation import Nodes, small_run

RELAY = "simulations.laboratory.nodes.failing:failing_relay"
_FAULTS = "faults.json"


class Run(NamedTuple):
    """The result of a run over real nodes: whether it was complete, its seconds, and how often hospitals failed."""

    whole: bool
    seconds: float
    failed: int


def failing_relay() -> int:
    """Run a relay that fails as `faults.json` in the parent folder specifies; `Nodes` starts it as its relay."""
    folder = Path.cwd()
    draws: dict[str, random.Random] = {}

    def answer(message: Message, context: Context) -> Message:
        faults = json.loads((folder.parent / _FAULTS).read_text(encoding="utf-8"))
        mine = draws.setdefault(faults["run"], random.Random(f"{faults['run']} {folder.name}"))  # noqa: S311
        if mine.random() < faults["rate"]:
            os.kill(os.getpid(), signal.SIGSTOP)
        return app(message, context)

    relay.serve = partial(relay.serve, client_app=answer)  # type: ignore[arg-type]
    return relay.main()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one line for each combination of the options' values."""
    parser = argparse.ArgumentParser(prog="failing", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--parties", type=int, default=10)
    parser.add_argument("--kinds", choices=KINDS, nargs="+", default=KINDS)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.01, 0.05, 0.2])
    parser.add_argument("--spares", type=float, nargs="+", default=[0.1])
    parser.add_argument("--retries", type=int, default=1)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--timeout", type=float, default=30.0)
    parser.add_argument("--predicted", type=int, default=100, help="runs in one process for each case")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, Nodes(Path(folder) / "n", options.parties, relay=RELAY) as nodes:
        for number in range(options.parties):
            nodes.set(number, lifetime_epsilon="null")
        faulty = Faulty(nodes, options.timeout, options.retries)
        faulty.run("calm0", 0, 0.0, lasting=False)  # the first one has more to do
        calm = faulty.run("calm1", 0, 0.0, lasting=False).seconds
        when = [time for _, time in nodes.requests(0, "calm1")]
        phase = (when[-1] - when[0]) / (len(when) - 1)
        sys.stdout.write(f"without faults: {calm:.1f} s, {phase:.2f} s a phase; lost: seconds of a whole run more\n")
        sys.stdout.write("kind  rate  max_dropouts  retries  whole  predicted   lost  predicted  failed\n")
        for kind, rate, spare in itertools.product(options.kinds, options.rates, options.spares):
            spared, lasting = round(spare * options.parties), kind == "gone"
            runs = [
                faulty.run(f"{kind}-{rate:g}-{spared}-{number}".replace(".", "-"), spared, rate, lasting=lasting)
                for number in range(options.runs)
            ]
            endings = [
                ended(
                    Faults(options.parties, rate, random.Random(seed), lasting=lasting),  # noqa: S311
                    dropouts=spared,
                    retries=options.retries,
                )
                for seed in range(options.predicted)
            ]
            figures = _figures(runs, endings, calm=calm, phase=phase, timeout=options.timeout)
            sys.stdout.write(f"{kind:4}{rate:6.0%}{spared:14}{options.retries:9}{figures}\n")
            sys.stdout.flush()
    return 0


def _figures(runs: Sequence[Run], endings: Sequence[Ending], *, calm: float, phase: float, timeout: float) -> str:
    """Return the cells of a line: complete runs, mean lost seconds (measured and predicted), and mean failures."""
    lost = [run.seconds - calm for run in runs if run.whole]
    expected = [
        ending.waits * timeout + (ending.phases - phases(QUERIES)) * phase for ending in endings if ending.whole
    ]
    shares = f"{len(lost) / len(runs):7.0%}{len(expected) / len(endings):11.0%}"
    return f"{shares}{_mean(lost):>7}{_mean(expected):>11}{_mean([run.failed for run in runs]):>8}"


def _mean(values: Sequence[float]) -> str:
    return f"{statistics.mean(values):.1f}" if values else "-"


class Faulty:
    """Runs with faults, over nodes that are all running when each run begins.

    Args:
        nodes: Nodes with `RELAY`, none of which has been started.
        timeout: Value of `federation.timeout`, in seconds.
        retries: Value of `federation.retries`.
    """

    def __init__(self, nodes: Nodes, timeout: float, retries: int) -> None:
        self._nodes, self._timeout, self._retries = nodes, timeout, retries

    def run(self, name: str, dropouts: int, rate: float, *, lasting: bool) -> Run:
        """Make one run, and wait until it has ended.

        Args:
            name: Name of the run.
            dropouts: Value of `federation.max_dropouts`.
            rate: Probability that a hospital fails in a phase.
            lasting: Whether a hospital that fails is killed; otherwise it continues after the timeout.

        Raises:
            RuntimeError: The run failed although no hospital did; the message contains its output.
        """
        nodes = self._nodes
        self._all_there()
        (nodes.folder / _FAULTS).write_text(json.dumps({"run": name, "rate": rate}), encoding="utf-8")
        began = time.monotonic()
        nodes.begin(
            name,
            f"federation.timeout={self._timeout}",
            f"federation.retries={self._retries}",
            f"federation.max_dropouts={dropouts}",
            *small_run(QUERIES + 1),
        )
        stopped: dict[int, float] = {}
        failed = 0
        while nodes.is_running(name):
            nodes.revive()
            for number in [number for number in nodes.stopped() if number not in stopped]:
                failed += 1
                if lasting:
                    nodes.kill(number)
                else:
                    stopped[number] = time.monotonic()
            for number in [number for number, since in stopped.items() if time.monotonic() > since + self._timeout + 1]:
                nodes.resume(number)
                del stopped[number]
            time.sleep(0.1)
        seconds = time.monotonic() - began
        for number in stopped:
            nodes.resume(number)
        code, said = nodes.finish(name)
        if code and not failed:
            raise RuntimeError(said)
        return Run(whole=not code, seconds=seconds, failed=failed)

    def _all_there(self) -> None:
        """Restart the killed hospitals, after SuperLink has noticed that they are gone."""
        here = self._nodes.started()
        wait(lambda: self._nodes.online() <= len(here), "killed nodes are offline", every=1.0)
        if gone := sorted(set(range(self._nodes.count)) - set(here)):
            self._nodes.up(*gone)


if __name__ == "__main__":
    logging.disable()  # one line for each hospital that fails
    sys.exit(main())
