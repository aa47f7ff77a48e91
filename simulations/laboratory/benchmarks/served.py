"""A round's requests through `llm=server` and our server, compared with the bare engine on the same prompts.

    make models && OMP_NUM_THREADS=2 python -m simulations.laboratory.benchmarks.served \
        [--model smollm2] [--requests 64] [--concurrency 32] [--tokens 80] [--repetitions 3]

The server runs in a separate process on this machine; the engine's own calls get all prompts at once. Both have the
same prompts, seeds and settings, and each keeps what it has read, so each repetition has new prompts. A speed is the
number of tokens read and written per second of wall-clock time, of which the server must not waste any: where requests
are not collected, an engine works on a few texts at a time. The speeds by CPU time, of client, server and engine
together, do not depend on what else the machine does. The table shows each repetition; the ratios are medians.
"""

import argparse
import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median

from common.errors import CaucusError, ProviderError
from server.llm.base import Provider, Request
from server.llm.remote.openai import provider
from server.llm.render import our_prompts
from server.llm.serve.__main__ import TOP_P
from server.llm.serve.model import ChatModel
from server.tasks import demo_notes
from simulations.laboratory.benchmarks.memory import descendants
from simulations.laboratory.benchmarks.ratios import Ratio, benchmark
from simulations.laboratory.output import show

_GOAL = 0.9  # of the engine's speed
_SHOWN, _WORDS = 4, 12  # examples of a prompt, and words of each
_WARM_UP = 4  # requests


def main(arguments: Sequence[str] | None = None) -> list[Ratio]:
    """Print a line for each repetition; return the engine's speed relative to the server's."""
    parser = argparse.ArgumentParser(prog="bench_served", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--model", default="smollm2", help="name of the catalogue, or a folder with a GGUF file")
    parser.add_argument("--requests", type=int, default=64, help="number of requests of a round")
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=80, help="maximum number of tokens of an answer")
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args(arguments)
    try:
        model = ChatModel(options.model, top_p=TOP_P)
        with _served(options.model) as url:
            client = provider(
                name="own",
                model=model.name,
                base_url=url,
                key_variable=None,
                length_field="max_tokens",
                seed=True,
                max_tokens=options.tokens,
                concurrency=options.concurrency,
            )
            ways = {"engine": partial(_bare, model, options.tokens), "server": partial(_asked, client)}
            show(f"{options.requests} requests, {options.concurrency} at once\n")
            show(f"{'':4}{'engine tokens/s':>16}{'server tokens/s':>17}{'server to engine':>18}\n")
            ratios: dict[str, list[float]] = {"time": [], "CPU": []}
            for repetition in range(options.repetitions + 1):  # the first is to warm up
                requests = _requests(options.requests if repetition else _WARM_UP, repetition * options.requests)
                # Each goes first in half of the repetitions: another program's load then falls on both.
                order = [*ways][:: 1 if repetition % 2 else -1]
                measured = {way: _speed(ways[way], requests) for way in order}
                for clock, values in ratios.items() if repetition else ():
                    engine, server = measured["engine"][clock], measured["server"][clock]
                    show(f"{clock:4}{engine:16.0f}{server:17.0f}{server / engine:18.2f}\n")
                    values.append(engine / server)
    except CaucusError as error:
        sys.exit(f"error: {error}")
    goals = {"time": round(1 / _GOAL, 2)}
    return [
        Ratio(name=f"{clock} a token, through the server", to="engine", value=median(values), goal=goals.get(clock))
        for clock, values in ratios.items()
    ]


@contextmanager
def _served(model: str) -> Iterator[str]:
    """Serve the model in a process of its own, for the duration of the context; yield its address.

    Raises:
        ProviderError: The server does not start.
    """
    command = [sys.executable, "-m", "server.llm.serve", model, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            address = re.search(r"base_url=(\S+)", process.stdout.readline())
            if address is None:
                raise ProviderError("the server", expected="its address", got=f"exit code {process.wait()}")
            yield address[1]
        finally:
            process.terminate()


def _requests(count: int, seed: int) -> list[Request]:
    """Return requests by example, as a round has them: of two labels, each with invented notes of its own."""
    labels = (("late_card", "a new card that has not come"), ("age_limit", "how old one must be to open an account"))
    return [
        Request(
            task_kind="message to a bank",
            labels=labels,
            label=labels[nth % 2][0],
            good=tuple(" ".join(note.split()[:_WORDS]) for note in demo_notes.public_text(_SHOWN, seed + nth)),
            words=_WORDS,
            seed=seed + nth,
        )
        for nth in range(count)
    ]


def _bare(model: ChatModel, tokens: int, requests: Sequence[Request]) -> int:
    """Let the engine answer; return the number of tokens read and written."""
    jobs = []
    for request in requests:
        system, user = our_prompts().render(request)
        turns = ({"role": "system", "content": system}, {"role": "user", "content": user})[not system :]
        jobs.append(model.job(turns, max_tokens=tokens, seed=request.seed))
    written: list[int] = []
    model.engine.sample(jobs, lambda _, continuations: written.append(len(continuations[0])))
    return sum(len(job.ids) for job in jobs) + sum(written)


def _asked(client: Provider, requests: Sequence[Request]) -> int:
    """Let the server answer; return the number of tokens read and written."""
    return sum(reply.input_tokens + reply.output_tokens for reply in client.generate(requests))


def _speed(work: Callable[[Sequence[Request]], int], requests: Sequence[Request]) -> dict[str, float]:
    """Return the tokens a second of work that returns its number of tokens, keyed by "time" and "CPU"."""
    processes = {os.getpid(), *descendants([os.getpid()])}
    start, used = time.perf_counter(), _cpu_seconds(processes)
    tokens = work(requests)
    tick = 1 / os.sysconf("SC_CLK_TCK")
    return {"time": tokens / (time.perf_counter() - start), "CPU": tokens / max(_cpu_seconds(processes) - used, tick)}


def _cpu_seconds(processes: Iterable[int]) -> float:
    """Return the total CPU time, in seconds, that these processes have used so far; those that have ended count 0."""
    ticks = 0
    for process in processes:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    benchmark(main)
