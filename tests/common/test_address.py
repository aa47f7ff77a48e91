"""Addresses that people type: each form is read as what it means, or refused in words that say what to write."""

import pytest

from common.address import check_host, check_web_address, host_and_port, split_place
from common.errors import ConfigError
from tests.support.addresses import HOSTS, NO_HOSTS, NO_PORTS, RIGHT, WRONG


@pytest.mark.parametrize("form", RIGHT)
def test_a_host_and_a_port_are_read(form):
    assert host_and_port("address", form) == split_place(form) == RIGHT[form]


@pytest.mark.parametrize("form", WRONG)
def test_another_form_is_refused_with_what_to_do_and_without_a_login(form):
    with pytest.raises(ConfigError) as refused:
        host_and_port("address", form)
    assert refused.value.what == "address"
    assert refused.value.do
    assert str(refused.value).isprintable()
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("host", "form"),
    [
        ("coördinator.example", "xn--cordinator-fcb.example"),
        ("KÖLN.example", "xn--kln-sna.example"),
        ("例え.example", "xn--r8jz45g.example"),
        ("straße.example", "which begins with xn--"),  # two forms: of two standards
        ("coo\N{COMBINING DIAERESIS}rdinator.example", "which begins with xn--"),
    ],
)
@pytest.mark.parametrize("check", [host_and_port, check_host, check_web_address])
def test_a_name_with_other_letters_is_shown_in_ascii(check, host, form):
    value = {host_and_port: f"{host}:9443", check_host: host, check_web_address: f"https://{host}/v1"}[check]
    with pytest.raises(ConfigError) as refused:
        check("address", value)
    assert refused.value.do.endswith(f" {form}")


def test_a_host_alone_has_no_port_and_no_brackets():
    for host in [*HOSTS.values(), "0.0.0.0", "::"]:
        assert check_host("listen", host) is None
    for host in {*NO_HOSTS, *RIGHT} - {*HOSTS.values(), "2001:db8::1"}:
        with pytest.raises(ConfigError, match=r"^listen;"):
            check_host("listen", host)


@pytest.mark.parametrize("host", HOSTS)
def test_a_web_address_has_a_scheme_and_maybe_a_port_and_a_path(host):
    for scheme in ("http", "https"):
        for rest in ("", "/", "/v1", ":8000", ":8000/v1/", "/a%20b?c=d"):
            assert check_web_address("base_url", f"{scheme}://{host}{rest}") is None
    for wrong in (
        *(host, f"{host}:8000/v1", f"ftp://{host}", f"https:/{host}", f"https://{host}/a b", f"https://{host}/v1\n"),
        *(f" https://{host}", f"https://user:secret@{host}/v1", f"https://{host}/ü"),
        *(f"https://{host}:{port}/v1" for port in NO_PORTS if port),
    ):
        with pytest.raises(ConfigError, match=r"^base_url;") as refused:
            check_web_address("base_url", wrong)
        assert "secret" not in str(refused.value)


def test_a_port_may_be_left_out_where_there_is_one_to_take():
    assert split_place("[::1]", port=443) == ("::1", 443)
    assert split_place("localhost", port=443) == ("localhost", 443)
    assert split_place("localhost:1", port=443) == ("localhost", 1)
    assert split_place("::1", port=443) is None
