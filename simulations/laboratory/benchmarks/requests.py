r"""The request layer compared with the bare SDK: concurrent requests to a server that answers after a fixed delay.

    OMP_NUM_THREADS=1 python -m simulations.laboratory.benchmarks.requests \
        [--requests 1000] [--concurrency 32] [--delay 0.05]

The server runs in a separate process on this machine. The ideal is the time in which a client without any overhead
would get all answers: the number of requests divided by the number of concurrent requests, rounded up, times the delay.
Both clients use chat completions, with one connection for each concurrent request, and without retries. CPU time is
that of the client alone.
"""

import argparse
import asyncio
import json
import math
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import openai
import uvicorn

from server.llm.base import Request
from server.llm.remote.openai import provider
from simulations.laboratory.benchmarks.ratios import Ratio, benchmark

_RUNS = 3
_ANSWER = {
    "id": "1",
    "object": "chat.completion",
    "created": 0,
    "model": "fixed",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": '["Fever for three days."]'},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 100, "completion_tokens": 3, "total_tokens": 103},
}
_SERVE = f"import sys; from {__spec__.name} import serve_delayed; serve_delayed(float(sys.argv[1]))"


def main(arguments: Sequence[str] | None = None) -> list[Ratio]:
    """Print a line for each client; return the ratios."""
    parser = argparse.ArgumentParser(prog="bench_requests", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--delay", type=float, default=0.05, help="seconds until an answer")
    options = parser.parse_args(arguments)
    ideal = math.ceil(options.requests / options.concurrency) * options.delay
    with subprocess.Popen(
        [sys.executable, "-c", _SERVE, str(options.delay)], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
            clients = {"ours": _our_client(url, options), "bare SDK": _bare(url, options)}
            fastest = {name: min(_timed(client) for _ in range(_RUNS)) for name, client in clients.items()}
        finally:
            server.terminate()
    sys.stdout.write(f"{options.requests} requests of {1000 * options.delay:g} ms, {options.concurrency} at once\n")
    sys.stdout.write(f"{'client':10}{'wall s':>8}{'x ideal':>9}{'CPU ms a request':>18}\n")
    for name, (wall, cpu) in fastest.items():
        sys.stdout.write(f"{name:10}{wall:8.2f}{wall / ideal:9.2f}{1000 * cpu / options.requests:18.2f}\n")
    (wall, cpu), (_, bare) = fastest["ours"], fastest["bare SDK"]
    return [
        Ratio(name="wall time", to="ideal", value=wall / ideal, goal=1.3),
        Ratio(name="CPU time", to="bare SDK", value=cpu / bare),
    ]


def serve_delayed(delay: float) -> None:
    """Answer every request on a free port after `delay` seconds; print the port's number."""
    body = json.dumps(_ANSWER).encode()

    async def app(_: object, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
        while (await receive()).get("more_body"):
            pass
        await asyncio.sleep(delay)
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    with socket.create_server(("127.0.0.1", 0)) as listening:
        sys.stdout.write(f"{listening.getsockname()[1]}\n")
        sys.stdout.flush()
        settings = uvicorn.Config(app, lifespan="off", log_level="warning", access_log=False)
        uvicorn.Server(settings).run(sockets=[listening])


def _our_client(url: str, options: argparse.Namespace) -> Callable[[], None]:
    model = provider(
        name="fixed", model="fixed", base_url=url, key_variable=None, concurrency=options.concurrency, max_tokens=200
    )
    labels = (("flu", "influenza"), ("cold", "a common cold"))
    requests = [Request(task_kind="note", labels=labels, label="flu", seed=seed) for seed in range(options.requests)]

    def ask() -> None:
        replies = model.generate(requests)
        assert all(reply.texts for reply in replies)

    return ask


def _bare(url: str, options: argparse.Namespace) -> Callable[[], None]:
    async def worker(client: openai.AsyncOpenAI, todo: list[int]) -> None:
        while todo:
            todo.pop()
            answer = await client.chat.completions.create(
                model="fixed", messages=[{"role": "user", "content": "Write a note."}], max_completion_tokens=200
            )
            assert answer.choices[0].message.content

    async def ask() -> None:
        todo = list(range(options.requests))
        async with openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0) as client:
            await asyncio.gather(*(worker(client, todo) for _ in range(options.concurrency)))

    return lambda: asyncio.run(ask())


def _timed(action: Callable[[], None]) -> tuple[float, float]:
    """Return the wall-clock time and CPU time, in seconds, that the action takes."""
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - wall, time.process_time() - cpu


if __name__ == "__main__":
    benchmark(main)
