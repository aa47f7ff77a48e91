"""Variables of the environment: each form works in a real client, or is refused by name before one is made."""

import itertools
import os

import anthropic
import httpx
import openai
import pytest

from common.errors import ConfigError
from common.system import network_variables
from common.system.network_variables import HTTPX, PIP, check_network_variables
from server.deploy.authority import make_authority

PASSWORD = "geheim"
PROXIES = ("http_proxy", "https_proxy", "all_proxy")
PLACES = ("proxy.hospital:3128", "10.1.2.3:80", "[fd00::1]:3128", "proxy", f"user:{PASSWORD}@proxy:3128")
RIGHT = [
    *(f"{scheme}{place}{end}" for scheme in ("", "http://", "https://") for place in PLACES for end in ("", "/")),
    f"http://us%40er:{PASSWORD}%23%2F@proxy:3128",
]
WRONG = [
    *(f"{scheme}{PLACES[4]}" for scheme in ("socks5://", "socks5h://", "socks4://", "ftp://", " http://", "//", "://")),
    *(f"http://user:{PASSWORD}@{place}" for place in ("::1:3128", "fd00::1", "proxy:", "proxy:x", "proxy:99999", "")),
    *(f"http://user:{PASSWORD}@{place}" for place in ("proxy:1 ", "proxy:1\n", "pro xy:1", "pröxy:1", "proxy:1/path")),
    *(f"http://user:{PASSWORD}{letter}x@proxy:1" for letter in ("\n", " ")),
    f"http://user:{PASSWORD}#x@proxy:1/x",
]
EXCEPTIONS = ["", "*", "localhost", "127.0.0.0/8", "::1", "fe80::1", ".example", "a.example:443", "https://a.example"]
NO_EXCEPTIONS = ["[::1]", "[::1]:443", "fd00::/8", "[fd00::]/8", "a:b:c", "bücher.example"]
CLIENTS = (
    httpx.Client,
    lambda: openai.AsyncOpenAI(api_key="x"),
    lambda: anthropic.AsyncAnthropic(api_key="x"),
)


@pytest.fixture(autouse=True)
def empty(monkeypatch):
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name in {*HTTPX.certificates, *PIP.certificates}:
            monkeypatch.delenv(name)


def refused(name, library=HTTPX):
    with pytest.raises(ConfigError) as error:
        check_network_variables(library)
    assert error.value.what == name
    assert error.value.do
    assert str(error.value).isprintable()
    assert PASSWORD not in str(error.value)
    return error.value


def spelled(names):
    return [spelling(name) for name in names for spelling in (str.lower, str.upper)]


@pytest.mark.parametrize("name", spelled(PROXIES))
def test_a_proxy_that_clients_can_use_passes(name, monkeypatch):
    for value in ("", *RIGHT):
        monkeypatch.setenv(name, value)
        check_network_variables(HTTPX)
        check_network_variables(PIP)
    for client in CLIENTS:
        client()


@pytest.mark.parametrize("name", spelled(PROXIES))
def test_another_is_refused_by_name_and_without_its_login(name, monkeypatch):
    for value, library in itertools.product(WRONG, (HTTPX, PIP)):
        monkeypatch.setenv(name, value)
        refused(name, library)


def test_a_variable_in_lower_case_hides_the_other(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "socks5://proxy:1")
    refused("HTTPS_PROXY")
    monkeypatch.setenv("https_proxy", "http://proxy:1")
    check_network_variables(HTTPX)
    monkeypatch.setenv("https_proxy", "socks5://proxy:1")
    refused("https_proxy")
    monkeypatch.setenv("https_proxy", "")
    check_network_variables(HTTPX)
    for client in CLIENTS:
        client()


def test_socks_needs_a_package_which_is_named(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5://proxy:1080")
    assert "socksio" in refused("ALL_PROXY").do
    monkeypatch.setattr(network_variables, "find_spec", {"socksio": "there"}.get)
    check_network_variables(HTTPX)
    assert "socks," in refused("ALL_PROXY", PIP).do


@pytest.mark.parametrize("name", spelled(("no_proxy",)))
def test_exceptions_that_clients_can_use_pass_and_others_are_named(name, monkeypatch):
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.setenv(name, ", ".join(EXCEPTIONS))
    check_network_variables(HTTPX)
    for client in CLIENTS:
        client()
    for wrong in NO_EXCEPTIONS:
        monkeypatch.setenv(name, f"localhost,{wrong},::1")
        assert refused(name).got == repr(wrong)
        with pytest.raises(httpx.InvalidURL):
            httpx.Client()
        check_network_variables(PIP)


@pytest.mark.parametrize("name", [*HTTPX.certificates, *PIP.certificates])
def test_certificates_that_are_gone_or_are_none_are_named(name, monkeypatch, tmp_path):
    library = HTTPX if name in HTTPX.certificates else PIP
    make_authority(tmp_path)
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    # Of a folder nothing is read before a connection, nor of what is named as one: /dev/null is a way to trust none.
    unread = name == "SSL_CERT_DIR"
    forms = {"ca.crt": True, "folder": name != "SSL_CERT_FILE", "ca.key": unread, "empty": unread}
    for file, right in (forms | {"gone": False, "ca.crt/gone": False}).items():
        monkeypatch.setenv(name, str(tmp_path / file))
        if right:
            check_network_variables(library)
        else:
            assert refused(name, library).where == tmp_path / file
    monkeypatch.setenv(name, "")
    check_network_variables(library)


def test_of_several_variables_the_first_that_is_set_counts(monkeypatch, tmp_path):
    for library in (HTTPX, PIP):
        for name in library.certificates:
            monkeypatch.setenv(name, str(tmp_path / "gone"))
        refused(library.certificates[0], library)
        make_authority(tmp_path)
        monkeypatch.setenv(library.certificates[0], str(tmp_path / "ca.crt"))
        check_network_variables(library)
