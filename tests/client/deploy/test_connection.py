"""The connection to the coordinator through a hospital's proxy: what passes, and the one reason of what does not."""

import socket
import ssl

import pytest

from client.command import main
from client.deploy import connection, start
from client.deploy.settings import HospitalSettings
from client.flower import proxy
from common.errors import CaucusError, ConfigError
from server.deploy.authority import make_authority, make_certificate
from tests.support.between import Proxy
from tests.support.front_door import front_door
from tests.support.hospital import change, init_words, said

LOGIN = "us er:s3cr€t@"
ELSEWHERE = "127.0.0.2"
"""An address of this machine that counts as another's: none of those that are reached without a proxy."""


def give(folder, login):
    path = folder / "node" / proxy.LOGIN
    path.write_text(login)
    path.chmod(0o600)


def checked(folder):
    """Both of the calls with which `caucus-party check` tries the connection."""
    settings = HospitalSettings.load(folder)
    problems = connection.connect(settings)
    connection.check_node_key(settings)
    return problems


def refused(folder):
    """The error of the first call, which does not repeat the login."""
    with pytest.raises(CaucusError) as error:
        connection.connect(HospitalSettings.load(folder))
    assert "s3cr" not in str(error.value)
    return error.value


@pytest.mark.parametrize("login", ["", LOGIN])
def test_both_calls_go_through_the_proxy_with_its_login(login, made):
    if login:
        give(made, login)
    between = Proxy(login)
    with front_door(made, ELSEWHERE) as heard, between.at() as url:
        change(made, proxy=url)
        assert checked(made).via == url
        there = HospitalSettings.load(made).coordinator
    assert [(line.split()[:2], status) for line, status in between.asked] == [(["CONNECT", there], "200")] * 2
    assert len(heard) == 1


@pytest.mark.parametrize(("host", "named"), [("localhost", True), (ELSEWHERE, False)])
def test_this_machine_and_a_hospital_without_a_proxy_go_the_direct_way(host, named, made, monkeypatch):
    between = Proxy()
    with front_door(made, host) as heard, between.at() as url:
        monkeypatch.setenv("https_proxy", url)
        change(made, proxy=url if named else None)
        assert checked(made).via is None
    assert between.asked == []
    assert len(heard) == 1


@pytest.mark.parametrize(
    ("how", "got", "do"),
    [
        ({"login": "user:other"}, "407 Proxy Authentication Required", "login"),
        ({"only": "elsewhere:443"}, "403 Forbidden", "rule"),
        ({}, "502 Bad Gateway", "127.0.0.2:1"),
    ],
)
def test_a_refusal_of_the_proxy_is_one_line_with_its_reason(how, got, do, made):
    give(made, LOGIN)
    with Proxy(**how).at() as url:
        change(made, proxy=url, coordinator=f"{ELSEWHERE}:1")
        error = refused(made)
    assert (error.what, error.got, error.where) == ("proxy", got, f"{ELSEWHERE}:1, through {url}")
    assert do in error.do
    assert "\n" not in str(error)


def test_a_proxy_that_does_not_answer(made):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    change(made, proxy=url, coordinator=f"{ELSEWHERE}:1")
    error = refused(made)
    assert (error.what, error.got) == ("proxy", "Connection refused")
    assert "`proxy` in client.yaml" in error.do


def test_a_proxy_that_opens_tls_is_refused_and_hears_nothing(made, tmp_path):
    company = tmp_path / "company"
    company.mkdir()
    make_authority(company)
    make_certificate(company, ELSEWHERE)
    opens = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    opens.load_cert_chain(company / "server.crt", company / "server.key")
    between = Proxy(opens=opens)
    with front_door(made, ELSEWHERE) as heard, between.at() as url:
        change(made, proxy=url)
        error = refused(made)
        with pytest.raises(CaucusError):
            connection.check_node_key(HospitalSettings.load(made))
    assert isinstance(error, ConfigError)
    assert error.what == "coordinator's certificate"
    assert "opens TLS" in error.do
    assert between.opened == []
    assert heard == []


def test_a_proxy_of_the_shell_is_named_where_the_direct_way_is_closed(made, monkeypatch):
    for name in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    change(made, coordinator=f"{ELSEWHERE}:1")
    assert "shell" not in refused(made).do
    monkeypatch.setenv("HTTPS_PROXY", "http://user:s3cret@proxy:3128")
    assert "`proxy` in client.yaml" in refused(made).do


def test_supernode_alone_learns_of_the_proxy_and_no_process_starts_with_its_login(made):
    give(made, LOGIN)
    change(made, proxy="http://proxy:3128", metrics_port=9470)
    children = start.hospital_children(HospitalSettings.load(made), ("service", "relay"))
    assert [child.name for child in children] == ["service", "metrics", "supernode", "relay"]
    names = {child.name for child in children if any("proxy" in name.lower() for name in child.environment)}
    assert names == {"supernode"}
    started = "".join(f"{child.command}{child.environment}" for child in children)
    assert started.count("http://proxy:3128") == 1
    assert "s3cr" not in started


def test_a_hospital_whose_proxys_login_is_open_to_others_does_not_start(made, capsys):
    give(made, LOGIN)
    (made / "node" / proxy.LOGIN).chmod(0o644)
    change(made, proxy="http://proxy:3128")
    assert "got 0644" in said(capsys, "start", made)


def test_the_proxy_is_written_by_init_and_a_login_in_it_is_refused(made, capsys):
    folder = made.parent / "behind"
    assert main(init_words(folder, "--proxy", "http://user:s3cret@proxy:3128")) == 2
    assert "s3cret" not in capsys.readouterr().err
    assert not folder.exists()
    assert main(init_words(folder, "--proxy", "http://proxy:3128")) == 0
    assert HospitalSettings.load(folder).proxy == "http://proxy:3128"
    assert f"{folder / 'node' / proxy.LOGIN}, mode 0600\n" in capsys.readouterr().out
