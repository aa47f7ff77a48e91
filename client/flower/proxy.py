"""The node's connection to the coordinator through a hospital's proxy (HTTP CONNECT).

The proxy forwards bytes that TLS has encrypted. The node trusts no certificate authority but the coordinator's own, so
it refuses a proxy that intercepts TLS with a certificate of the hospital. Flower has no setting for a proxy, but its
HTTP library reads one from environment variables. This module sets them in the SuperNode process, and in `caucus-party
check` during its requests; variables set by a shell are ignored. The login is in a file in the relay's folder. It is
read only where it is needed, so that it never appears in an argument, in the environment that a process starts with, or
in a log.
"""

import base64
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from common.address import LOCAL, host_and_port, split_place
from common.errors import ConfigError
from common.system.files import check_secret, content_of

LOGIN = "proxy.login"
"""File in the relay's folder with one line, USER:PASSWORD, for a proxy that requires a login."""
VARIABLE = "https_proxy"
"""Environment variable that contains the proxy's URL."""


def address(url: str) -> tuple[str, int]:
    """Return the host and port of a proxy, whose URL is http://HOST:PORT.

    Raises:
        ConfigError: The URL has another form, or contains a login, which the message does not repeat.
    """
    expected = "http://HOST:PORT, or null"
    if "@" in url:
        do = f"Write the login, USER:PASSWORD, into node/{LOGIN} with mode 0600, which the relay's account owns"
        raise ConfigError("proxy", expected=expected, got="a URL with a login", do=do)
    scheme, _, place = url.partition("://")
    known = split_place(place.removesuffix("/"))
    if scheme != "http" or known is None:
        do = "Name an HTTP proxy: SOCKS does not work here, nor does https:// on the way to the proxy"
        raise ConfigError("proxy", expected=expected, got="another URL", do=do)
    return known


def check_way(url: str, coordinator: str) -> None:
    """Check that the coordinator can be reached through this proxy.

    Raises:
        ConfigError: As in `address`; or the coordinator has an IPv6 address, for which Python's libraries ask a proxy
            without brackets, so that it means another host and port.
    """
    address(url)
    host, _ = host_and_port("coordinator", coordinator)
    if ":" in host and host not in LOCAL:
        do = "Ask the coordinator for an address with a name"
        expected = "a name or an IPv4 address, as the way there is a proxy"
        raise ConfigError("coordinator", expected=expected, got=coordinator, do=do)


def login(folder: Path) -> tuple[str, str] | None:
    """Return the user and password for the proxy from the relay's folder; None if there is no such file.

    Raises:
        ConfigError: The file is open to others, or is not one line USER:PASSWORD.
        OSError: The file is a link or a pipe, or this account may not read it.
    """
    path = folder / LOGIN
    if not os.path.lexists(path):
        return None
    check_secret(path)
    line = content_of(path).decode(errors="replace").removesuffix("\n")
    user, colon, password = line.partition(":")
    if not (user and colon and line.isprintable() and "\N{REPLACEMENT CHARACTER}" not in line):
        raise ConfigError("the proxy's login is malformed", where=path, do="Write one line USER:PASSWORD in UTF-8")
    return user, password


def headers(folder: Path) -> dict[str, str]:
    """Return the login as a header of the request for a tunnel; raise the same errors as `login`."""
    if (known := login(folder)) is None:
        return {}
    return {"Proxy-Authorization": f"Basic {base64.b64encode(':'.join(known).encode()).decode()}"}


@contextmanager
def use_proxy(url: str | None, folder: Path) -> Iterator[None]:
    """Make this process use this proxy, or none, within the context; raise the errors of `address` and `login`."""
    variables = {} if url is None else _variables(url, folder)
    before = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    _replace(before, variables)
    try:
        yield
    finally:
        _replace(variables, before)


def _variables(url: str, folder: Path) -> dict[str, str]:
    address(url)
    known = login(folder)
    userinfo = "" if known is None else f"{':'.join(quote(part, safe='') for part in known)}@"
    return {VARIABLE: url.replace("://", f"://{userinfo}", 1), "no_proxy": ",".join(LOCAL)}


def _replace(old: dict[str, str], new: dict[str, str]) -> None:
    for name in old:
        del os.environ[name]
    os.environ.update(new)
