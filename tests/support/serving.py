"""Servers of language models as processes on loopback: ours, and those of transformers and of llama.cpp."""

import importlib.util
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from common.system.processes import free_port
from server.llm import cache
from simulations.laboratory.nodes.deployment import wait

LLAMA_CPP = """
import signal, sys, xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path, parameters.hostnames, parameters.port = sys.argv[1], ["127.0.0.1"], int(sys.argv[2])
parameters.n_parallel, parameters.n_ctx, parameters.warmup, parameters.verbosity = 4, int(sys.argv[3]), False, -1
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1  # more wait for each other on a busy machine
server = xllamacpp.Server(parameters)
signal.pause()
"""


def missing(kind):
    """Return why no server of this kind can be started here; an empty string if it can."""
    if kind == "llama.cpp" and importlib.util.find_spec("xllamacpp") is None:
        return "xllamacpp, which holds llama.cpp's server, is not installed"
    return ""


class Served:
    """One model behind a real server of OpenAI's protocol.

    Args:
        kind: "caucus" for `python -m server.llm.serve`, "transformers" for `transformers serve`, or "llama.cpp".
        model: A folder of transformers, or a GGUF file, which llama.cpp must have.
        log: File of the server's output.
        context: Number of tokens in each of llama.cpp's four slots.

    Attributes:
        model: Name of the model in requests.
        url: Address for `base_url`, which stays the same after another `up`.
    """

    def __init__(self, kind, model, log, *, context=512):
        self.kind, self.log, self._path, self._context = kind, Path(log), str(model), context
        self.model = Path(model).name if kind == "caucus" else str(model)
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}/v1"
        self._process = None

    def up(self):
        """Start the server, and wait until it can respond."""
        command = {
            "caucus": [sys.executable, "-m", "server.llm.serve", self._path, "--port", str(self._port)],
            "transformers": [
                Path(sys.executable).parent / "transformers",
                "serve",
                self._path,
                "--device",
                "cpu",
                "--host",
                "127.0.0.1",
                "--port",
                str(self._port),
            ],
            "llama.cpp": [sys.executable, "-c", LLAMA_CPP, self._path, str(self._port), str(4 * self._context)],
        }[self.kind]
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                command, env=os.environ | {"HF_HUB_OFFLINE": "1"}, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
        wait(self._ready, "the server answers", 240)
        return self

    def killed(self):
        """Kill the server, as `kill -9` does, together with the requests that it is answering."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def answered(self):
        """Return the number of requests that our server, or transformers', has answered, according to its log."""
        return self.log.read_text("utf-8", errors="replace").count('"POST /v1/chat/completions HTTP/1.1" 200')

    def _ready(self):
        assert self._process.poll() is None, self.log.read_text("utf-8", errors="replace")[-2000:]
        try:
            health = f"{self.url}/models" if self.kind == "caucus" else self.url.removesuffix("/v1") + "/health"
            with urllib.request.urlopen(health, timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False


def kill_after(replies, server, monkeypatch):
    """Kill the server once a run has kept this many replies; return the list of all replies that it keeps.

    Each is a row of the cache: the database, the key and the reply. A reply that is stored for good later counts once.
    """
    kept, write = [], cache._write

    def counted(database, key, reply):
        before = database.total_changes
        write(database, key, reply)
        if database.total_changes > before:
            kept.append((database, key, reply))
            if len(kept) == replies:
                server.killed()

    monkeypatch.setattr(cache, "_write", counted)
    return kept
