"""Checks of the environment variables with a proxy, the certificates to trust or a key, before a library reads them.

Such a variable was often set for another program. A library that cannot use its value fails with a traceback, or only
after all retries and as if the network were down. Each error here names the variable and says what to do, but does not
repeat a key, or the value of a proxy, which may contain a login.
"""

import os
import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import AddressValueError, IPv6Address
from pathlib import Path

from common.address import split_place
from common.errors import ConfigError

_KEY = re.compile(r"[!#-&(-~]+")
_LOGIN = re.compile(r"[^\s/?#@\[\]\x00-\x1f\x7f]*")
_PORT = 80
"""Port of a proxy that is named without one; here it only completes the address for its check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLibrary:
    """The variables that one HTTP library reads.

    Attributes:
        proxies: Variables with a proxy, in lower case; each counts in upper case too, unless it is set in lower case.
        exceptions: Variables with hosts that are reached without a proxy, in the same way.
        certificates: Variables with a file or folder of certificates, of which the first that is set counts.
        socks: Package without which it has no SOCKS.
    """

    proxies: tuple[str, ...] = ("http_proxy", "https_proxy", "all_proxy")
    exceptions: tuple[str, ...]
    certificates: tuple[str, ...]
    socks: str


HTTPX = HttpLibrary(exceptions=("no_proxy",), certificates=("SSL_CERT_FILE", "SSL_CERT_DIR"), socks="socksio")
"""What the clients of remote language models use."""
PIP = HttpLibrary(
    proxies=("http_proxy", "https_proxy", "all_proxy", "pip_proxy"),
    exceptions=(),
    certificates=("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    socks="socks",
)


def check_network_variables(library: HttpLibrary) -> None:
    """Raise a ConfigError that names the first variable that the library reads and cannot use."""
    for name, value in _chosen(library.proxies):
        _check_proxy(name, value, library.socks)
    for name, value in _chosen(library.exceptions):
        for host in filter(None, map(str.strip, value.split(","))):
            _check_exception(name, host)
    if first := next(filter(os.environ.get, library.certificates), None):
        _check_certificates(first, Path(os.environ[first]))


def key_in(variable: str) -> str:
    """Return the key for a server in an environment variable, without white space around it; empty if it has none.

    Raises:
        ConfigError: There are characters that no header may have, or quotes; the message does not repeat the key.
    """
    key = os.environ.get(variable, "").strip()
    if key and not _KEY.fullmatch(key):
        do = f"Copy the key into {variable} again, and nothing around it"
        raise ConfigError(variable, expected="a key, in ASCII without spaces and quotes", got="others too", do=do)
    return key


def _chosen(names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the variables that count, with their values; a variable in lower case hides the one in upper case."""
    for lower in names:
        name = lower if lower in os.environ else lower.upper()
        if value := os.environ.get(name):
            yield name, value


def _check_proxy(name: str, value: str, socks: str) -> None:
    scheme, separator, rest = value.partition("://")
    if not separator:
        scheme, rest = "http", value
    login, _, place = rest.rpartition("@")
    if scheme in {"socks5", "socks5h"}:
        if find_spec(socks) is None:
            do = f"Name an HTTP proxy there, or unset {name}: SOCKS needs the package {socks}, which is not installed"
            raise ConfigError(name, expected="an HTTP proxy, http://HOST:PORT", got="a SOCKS proxy", do=do)
    elif scheme not in {"http", "https"}:
        do = f"Write http:// in front of the proxy's host in {name}, or unset it"
        raise ConfigError(name, expected="an HTTP proxy, http://HOST:PORT", got="another scheme", do=do)
    if not _LOGIN.fullmatch(login) or split_place(place.removesuffix("/"), port=_PORT) is None:
        do = "Correct it: an IPv6 address has brackets, and %40, %2F, %23 in a password stand for @, / and #"
        raise ConfigError(name, expected="http://HOST:PORT, with or without USER:PASSWORD@", got="another", do=do)


def _check_exception(name: str, host: str) -> None:
    """Check one host of NO_PROXY: httpx takes no IPv6 address in brackets, no network of them, and ASCII alone."""
    if host.isascii() and (host.count(":") <= 1 or "://" in host or _is_ipv6(host)):
        return
    expected = "hosts separated by commas, an IPv6 address without brackets and network, a name in ASCII"
    raise ConfigError(name, expected=expected, got=repr(host), do=f"Correct this host in {name}, such as ::1 for [::1]")


def _is_ipv6(host: str) -> bool:
    try:
        return bool(IPv6Address(host))
    except AddressValueError:
        return False


def _check_certificates(name: str, path: Path) -> None:
    do = f"Correct {name}, or unset it"
    if not path.exists():
        raise ConfigError(name, expected="existing certificates", got="none", where=path, do=do)
    if name == "SSL_CERT_FILE" or (path.is_file() and name != "SSL_CERT_DIR"):
        try:
            ssl.create_default_context(cafile=path)
        except OSError as error:  # an SSLError is one
            got = error.strerror or type(error).__name__
            raise ConfigError(name, expected="a file of certificates, PEM", got=got, where=path, do=do) from None
