"""A coordinator's front door on this machine, which gives all nodes the same answer."""

import json
import socket
import ssl
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from client.flower.node_key import ActivateNodeRequest
from server.deploy.authority import make_certificate
from tests.support.hospital import change


@contextmanager
def front_door(folder, host="localhost", *, status=400, code=2003, ahead=0, certificate=None):
    """Serve a front door and name it in the hospital's `client.yaml`; yield the list of calls that it receives.

    Args:
        folder: The hospital's folder; the authority is next to it.
        host: A name or address of this machine.
        status: Status of the answer to a node's call.
        code: Flower's code in that answer; None for an empty answer.
        ahead: Seconds by which the hospital's clock is ahead; None for an answer without a date.
        certificate: Arguments of `make_certificate`.
    """
    heard = []

    class Door(BaseHTTPRequestHandler):
        def date_time_string(self, timestamp=None):
            return (
                format_datetime(datetime.now(UTC) - timedelta(seconds=ahead), usegmt=True) if ahead is not None else ""
            )

        def do_GET(self):
            self.answer(200, b"")

        def do_POST(self):
            content = self.rfile.read(int(self.headers["content-length"]))
            heard.append((self.path, dict(self.headers), ActivateNodeRequest.FromString(content)))
            self.answer(status, json.dumps({"code": code, "detail": "x"}).encode() if code else b"")

        def answer(self, number, body):
            self.send_response(number)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    at = folder.parent
    make_certificate(at, host, **(certificate or {}))
    server = ThreadingHTTPServer((socket.gethostbyname(host), 0), Door)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(at / "server.crt", at / "server.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    change(folder, coordinator=f"{host}:{server.server_port}")
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield heard
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
