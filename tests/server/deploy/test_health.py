"""The health check of a coordinator's container asks as a hospital does."""

import contextlib
import ssl
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from common.system.processes import free_port
from server.deploy import health
from server.deploy.authority import make_authority, make_certificate
from server.deploy.settings import YAML


@pytest.fixture
def folder(tmp_path):
    make_authority(tmp_path)
    make_certificate(tmp_path, "coordinator.example")
    return tmp_path


@contextlib.contextmanager
def door(folder, code, listen="0.0.0.0"):
    """A front door behind which SuperLink answers with this code."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(code if self.path == "/health" else 404)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    settle(folder, server.server_address[1], listen)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def settle(folder, port, listen="0.0.0.0"):
    values = {"folder": folder, "address": f"coordinator.example:{port}", "listen": listen, "superlink_port": 39090}
    (folder / "coordinator.yaml").write_text(YAML.format(**values))


def said(folder, capsys):
    code = health.main([str(folder)])
    return code, capsys.readouterr().out.strip()


@pytest.mark.parametrize(
    ("listen", "answer", "code"), [("0.0.0.0", 200, 0), ("127.0.0.1", 200, 0), ("0.0.0.0", 503, 1)]
)
def test_a_coordinator_works_if_superlink_answers_through_the_front_door(listen, answer, code, folder, capsys):
    with door(folder, answer, listen):
        assert said(folder, capsys)[0] == code


def test_no_front_door_does_not_work(folder, capsys):
    settle(folder, free_port())
    code, line = said(folder, capsys)
    assert (code, line.endswith("Connection refused")) == (1, True)


def test_a_certificate_of_another_authority_does_not_work(folder, capsys):
    with door(folder, 200):
        make_authority(folder)
        code, line = said(folder, capsys)
    assert code == 1
    assert "CERTIFICATE_VERIFY_FAILED" in line or "verify failed" in line
