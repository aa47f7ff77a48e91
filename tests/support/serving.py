"""Servers of language models as processes on loopback: those of transformers and of llama.cpp."""

import importlib.util
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from simulations.laboratory.nodes.deployment import free_port, wait

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
        kind: "transformers" for `transformers serve`, or "llama.cpp".
        model: A folder of transformers, or a GGUF file for llama.cpp.
        log: File of the server's output.
        context: Number of tokens in each of llama.cpp's four slots.

    Attributes:
        model: Name of the model in requests.
        url: Address for `base_url`, which stays the same after another `up`.
    """

    def __init__(self, kind, model, log, *, context=512):
        self.kind, self.model, self.log, self._context = kind, str(model), Path(log), context
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}/v1"
        self._process = None

    def up(self):
        """Start the server, and wait until it can respond."""
        command = {
            "transformers": [
                Path(sys.executable).parent / "transformers",
                "serve",
                self.model,
                "--device",
                "cpu",
                "--host",
                "127.0.0.1",
                "--port",
                str(self._port),
            ],
            "llama.cpp": [sys.executable, "-c", LLAMA_CPP, self.model, str(self._port), str(4 * self._context)],
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
        """Return the number of requests that transformers' server has answered, according to its log."""
        return self.log.read_text("utf-8", errors="replace").count('"POST /v1/chat/completions HTTP/1.1" 200')

    def _ready(self):
        assert self._process.poll() is None, self.log.read_text("utf-8", errors="replace")[-2000:]
        try:
            with urllib.request.urlopen(self.url.removesuffix("/v1") + "/health", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False
