"""A page for other machines: never without TLS and a password, which has five tries beside the link."""

import argparse
import socket
import ssl
from functools import partial
from threading import Thread

import httpx
import pytest
from starlette.responses import HTMLResponse

from client.page.app import hospital_page
from common.errors import ConfigError
from common.page.access import MOST_TRIES, Access
from common.page.address import add_page_command, address_of
from common.page.app import page_server
from server.deploy.authority import make_authority, make_certificate
from tests.support.browsing import Browser
from tests.support.hospital import operated

PASSWORD = "correct horse battery"


@pytest.fixture
def files(tmp_path):
    """The options of an address, with a certificate for localhost."""
    make_authority(tmp_path)
    make_certificate(tmp_path, "localhost")
    password = tmp_path / "password"
    password.touch(mode=0o600)
    password.write_text(f"{PASSWORD}\n")
    named = {"certificate": tmp_path / "server.crt", "key": tmp_path / "server.key", "password-file": password}
    return {"address": "localhost:8470"} | named


def chosen(options):
    parser = argparse.ArgumentParser()
    add_page_command(parser.add_subparsers(), "caucus-party", None, owner="hospital", port=8470, summary="", does="")
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return address_of(parser.parse_args(["page", "folder", *words]))


def test_all_four_options_or_none(files):
    assert chosen({}) is None
    address = chosen(files)
    assert (address.named, address.password) == ("localhost:8470", PASSWORD)
    assert PASSWORD not in repr(address)
    assert chosen(files | {"address": "[::1]:443"}).named == "[::1]"
    for name in files:
        with pytest.raises(ConfigError, match=f"--{name}"):
            chosen({other: value for other, value in files.items() if other != name})


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda files: files.update(address="0.0.0.0:8470"), "expected one name or address, as browsers will use it"),
        (lambda files: files.update(address="0:8470"), "expected host:port"),
        (lambda files: files.update(address="0x0:8470"), "expected one name or address, as browsers will use it"),
        (lambda files: files.update(address="[::]:8470"), "expected one name or address, as browsers will use it"),
        (lambda files: files.update(address="[::ffff:0.0.0.0]:8470"), "expected one name or address"),
        (lambda files: files.update(address="localhost"), "expected host:port"),
        (lambda files: files["key"].chmod(0o640), "mode 0600; got 0640"),
        (lambda files: files["password-file"].chmod(0o644), "mode 0600; got 0644"),
        (lambda files: files["password-file"].write_text("short"), "at least 12 printable characters; got another"),
        (lambda files: files["password-file"].write_text("two lines of\nwords"), "one line of at least 12"),
        (lambda files: files.update(certificate=files["password-file"]), "a certificate in PEM form and its key"),
        (lambda files: files.update(certificate=files["key"].with_name("ca.crt")), "certificate in PEM form and its"),
    ],
)
def test_what_would_not_protect_the_page_is_refused(change, wrong, files):
    change(files)
    with pytest.raises(ConfigError, match=wrong) as caught:
        chosen(files)
    assert PASSWORD not in str(caught.value)


def test_the_link_opens_the_page_only_with_the_password_and_has_five_tries(tmp_path):
    for right in (True, False):
        browser = Browser(operated(tmp_path / str(right)), password=PASSWORD)
        link = browser.access.link.removeprefix(browser.access.origin)
        asked = browser.ask("GET", link)
        assert 'type="password"' in asked.text
        assert "set-cookie" not in asked.headers
        assert browser.ask("POST", link, form={"password": PASSWORD}, headers={"origin": None}).status_code == 403
        for number in range(1, MOST_TRIES + 1):
            wrong = browser.ask("POST", link, form={"password": f"{PASSWORD}."})
            assert ("set-cookie" in wrong.headers, wrong.status_code) == (False, 403)
            assert ("This is not the password" in wrong.text) == (number < MOST_TRIES)
            if right:
                break
        entered = browser.ask("POST", link, form={"password": PASSWORD})
        assert entered.status_code == (200 if right else 403)
        assert ("; Secure" in entered.headers.get("set-cookie", "")) == right
        assert browser.ask("POST", link, form={"password": PASSWORD}).status_code == 403  # once


@pytest.mark.parametrize(
    ("named", "cookie"),
    [("[::1]", "caucus_443"), ("[::1]:8470", "caucus_8470"), ("example.org", "caucus_443")],
)
def test_the_name_of_the_cookie_has_the_port(named, cookie):
    access = Access(named, password=PASSWORD)
    assert access.cookie_name == cookie
    HTMLResponse("").set_cookie(access.cookie_name, "value")  # a wrong name is refused


def test_a_real_server_speaks_tls_alone_and_knows_its_own_name_alone(files, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        address = chosen(files | {"address": f"localhost:{port}"})
        page = partial(hospital_page, operated(tmp_path / "page"))
        access, server = page_server(page, address.named, address)
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            assert access.link.startswith(f"https://localhost:{port}/")
            with httpx.Client(
                verify=ssl.create_default_context(cafile=tmp_path / "ca.crt"), trust_env=False, timeout=30
            ) as client:
                assert "password" in client.get(access.link).text
                sent = {"data": {"password": PASSWORD}, "headers": {"origin": access.origin}}
                assert client.post(access.link, **sent).status_code == 200
                root = access.link.partition("enter/")[0]
                assert client.get(root).status_code == 200
                assert client.get(root.replace("localhost", "127.0.0.1")).status_code == 421
                with pytest.raises(httpx.HTTPError):
                    client.get(root.replace("https", "http"))
        finally:
            server.should_exit = True
            thread.join()
