"""A hospital's proxy: what may name it, where its login is, and which process learns of it."""

import base64
import os
import subprocess
import sys

import httpx
import pytest

from client.flower import proxy
from common.errors import ConfigError
from tests.support.addresses import RIGHT
from tests.support.between import Proxy

PASSWORD = "p@ss:w/rd%41 ü"
"""Characters that a URL gives another meaning."""


def give(folder, content, mode=0o600):
    path = folder / proxy.LOGIN
    path.write_bytes(content)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://proxy.hospital:3128", ("proxy.hospital", 3128)),
        ("http://10.1.2.3:80/", ("10.1.2.3", 80)),
        ("http://[fd00::1]:3128", ("fd00::1", 3128)),
    ],
)
def test_a_proxy_is_named_by_host_and_port(url, address):
    assert proxy.address(url) == address


@pytest.mark.parametrize(
    "url",
    [
        "",
        "proxy.hospital:3128",
        "http://proxy.hospital",
        "https://proxy:1",
        "socks5://proxy:1",
        "http://proxy:1/path",
        "http://proxy:0",
        "http://proxy:65536",
        "http://proxy:1\n",
        "http://:1",
        "http://fd00::1:3128",
    ],
)
def test_any_other_url_is_refused(url):
    with pytest.raises(ConfigError, match=r"^proxy;"):
        proxy.address(url)


@pytest.mark.parametrize("coordinator", RIGHT)
def test_through_a_proxy_a_coordinator_has_a_name_or_an_ipv4_address(coordinator):
    host, _ = RIGHT[coordinator]
    if ":" in host and host != "::1":
        with pytest.raises(ConfigError, match=r"^coordinator;"):
            proxy.check_way("http://proxy:3128", coordinator)
    else:
        assert proxy.check_way("http://proxy:3128", coordinator) is None


def test_a_login_in_the_url_is_refused_and_not_repeated():
    for url in ("http://user:secret@proxy:3128", "user:secret@proxy:3128"):
        with pytest.raises(ConfigError, match=r"a login") as refused:
            proxy.address(url)
        assert "secret" not in str(refused.value)


def test_without_the_file_there_is_no_login(tmp_path):
    assert proxy.login(tmp_path) is None
    assert proxy.headers(tmp_path) == {}


def test_the_login_is_one_line_whose_password_may_contain_anything(tmp_path):
    for content in (f"user:{PASSWORD}", f"user:{PASSWORD}\n"):
        give(tmp_path, content.encode())
        assert proxy.login(tmp_path) == ("user", PASSWORD)
    (header,) = proxy.headers(tmp_path).values()
    assert base64.b64decode(header.removeprefix("Basic ")) == f"user:{PASSWORD}".encode()


@pytest.mark.parametrize(
    "content", [b"", b"user", b":secret", b"user:secret\nmore", b"user:secret\r\n", b"user:\xff", b"user:secret\x00"]
)
def test_a_malformed_login_is_refused_and_not_repeated(content, tmp_path):
    path = give(tmp_path, content)
    with pytest.raises(ConfigError) as refused:
        proxy.login(tmp_path)
    assert refused.value.where == path
    assert "secret" not in str(refused.value)


def test_a_login_that_others_can_read_or_a_link_is_refused(tmp_path):
    path = give(tmp_path, b"user:secret", 0o640)
    with pytest.raises(ConfigError, match="got 0640"):
        proxy.login(tmp_path)
    path.chmod(0o600)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=proxy.LOGIN):
        proxy.login(tmp_path)


def variables():
    return {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}


@pytest.fixture
def shell(monkeypatch):
    """The variables of a shell that names other proxies."""
    for name in variables():
        monkeypatch.delenv(name)
    ambient = {"HTTPS_PROXY": "http://other:1", "all_proxy": "http://other:2", "NO_PROXY": "*"}
    for name, value in ambient.items():
        monkeypatch.setenv(name, value)
    return ambient


def test_the_variables_of_a_shell_do_not_count(shell, tmp_path):
    with proxy.use_proxy(None, tmp_path):
        assert variables() == {}
    assert variables() == shell
    with proxy.use_proxy("http://proxy:3128", tmp_path):
        assert variables() == {"https_proxy": "http://proxy:3128", "no_proxy": "localhost,127.0.0.1,::1"}
    assert variables() == shell


def test_after_an_error_the_variables_are_as_before(shell, tmp_path):
    def fail():
        with proxy.use_proxy("http://proxy:3128", tmp_path):
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    with pytest.raises(ConfigError), proxy.use_proxy("nothing", tmp_path):
        pass
    assert variables() == shell


def test_the_http_library_of_flower_finds_proxy_and_login_and_goes_to_this_machine_directly(tmp_path):
    give(tmp_path, f"us er:{PASSWORD}\n".encode())
    hospitals = Proxy(f"us er:{PASSWORD}", only="none")
    with hospitals.at() as url, proxy.use_proxy(url, tmp_path), httpx.Client() as client:
        with pytest.raises(httpx.ProxyError, match="403 Forbidden"):  # and not 407
            client.get("https://coordinator.example:9443")
        for local in ("localhost", "127.0.0.1", "[::1]"):
            with pytest.raises(httpx.ConnectError):
                client.get(f"https://{local}:1")
    assert hospitals.asked == [("CONNECT coordinator.example:9443 HTTP/1.1", "403")]


def test_neither_arguments_nor_the_environment_that_other_programs_see_have_the_login(tmp_path):
    give(tmp_path, b"user:secret")
    code = """
import os, sys
from pathlib import Path
from client.flower import proxy
with proxy.use_proxy("http://proxy:3128", Path(sys.argv[1])):
    assert "user:secret@" in os.environ["https_proxy"]
    print(Path("/proc/self/environ").read_text(), Path("/proc/self/cmdline").read_text())
"""
    command = [sys.executable, "-", tmp_path]
    completed = subprocess.run(command, input=code, capture_output=True, text=True, check=True)
    assert "PATH=" in completed.stdout
    assert "secret" not in completed.stdout + completed.stderr
