"""A model of this machine behind OpenAI's protocol, for tests and for a trial of `llm=server` without a key.

    python -m server.llm.serve smollm2 [--port 8080]
    caucus-simulate llm=server llm.models.own.base_url=http://127.0.0.1:8080/v1 llm.models.own.model=smollm2

It answers requests that wait for the engine together, so that the processor is busy. For work use vLLM or another
server of this protocol: this one streams nothing and asks for no key.
"""

import argparse
import contextlib
import logging
import socket
import sys
from collections.abc import Iterator, Sequence

import uvicorn

from common.system.commands import run
from server.llm.serve.app import application
from server.llm.serve.model import ChatModel

HOST, PORT = "127.0.0.1", 8080
TOP_P = 0.95  # as of models that run in the coordinator itself


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve one model until Ctrl-C; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m server.llm.serve", description=__doc__.split("\n", 1)[0])
    parser.add_argument("model", metavar="MODEL", help="name of the catalogue, folder or GGUF file")
    parser.add_argument("--port", type=int, default=PORT, help=f"0 for any free one; {PORT} if not given")
    parser.add_argument(
        "--host", default=HOST, help=f"{HOST} if not given; anyone who can reach another may use the model"
    )
    parser.add_argument("--engine", choices=("openvino", "transformers"), help="openvino where there is a GGUF file")
    parser.add_argument("--device", help="of transformers, as torch names it; a GPU if there is one")
    parser.add_argument("--top-p", type=float, default=TOP_P, help=f"for requests without top_p; {TOP_P} if not given")
    parser.set_defaults(lines=serve_until_stopped)
    return run(parser, arguments)


def serve_until_stopped(options: argparse.Namespace) -> Iterator[str]:
    """Serve until Ctrl-C; yield the lines that the command prints, once requests can come.

    Raises:
        ConfigError: The model cannot be served.
        OSError: The port is in use, or the host is not this machine's.
    """
    logging.basicConfig(format="%(message)s")
    model = ChatModel(options.model, engine=options.engine, device=options.device, top_p=options.top_p)
    family = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)[0][0]
    with socket.create_server((options.host, options.port), family=family) as listening:
        host = f"[{options.host}]" if family == socket.AF_INET6 else options.host
        url = f"http://{host}:{listening.getsockname()[1]}/v1"
        yield f"llm=server llm.models.own.base_url={url} llm.models.own.model={model.name}"
        yield "Ctrl-C ends it"
        config = uvicorn.Config(
            application(model),
            lifespan="off",
            log_config=None,  # uvicorn's own would close the handlers that others have set up
            log_level="info",  # a line for each request, with path and status
            timeout_graceful_shutdown=1,
            ws="none",
        )
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    sys.exit(main())
