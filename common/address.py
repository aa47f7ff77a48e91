"""Addresses that people type: host:port, and the address of a web server.

A host is a name in ASCII, an IPv4 address or an IPv6 address; before a port, an IPv6 address stands in brackets. Any
other form would fail later and on another machine: a hospital would see only "Name or service not known".
"""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from common.errors import ConfigError

LOCAL = ("localhost", "127.0.0.1", "::1")
"""Names of this machine, which is never reached through a proxy."""
EXAMPLES = "coordinator.example:9443 or [2001:db8::1]:9443"
_PLACE = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:]+)):([0-9]{1,5})")
_WEB = re.compile(r"https?://([^/?#]+)(/[!-~]*)?")
_LABEL = re.compile(r"(?!-)[0-9A-Za-z_-]{1,63}(?<!-)")
_LONGEST_NAME = 253
_PORTS = range(1, 2**16)


def host_and_port(name: str, value: str) -> tuple[str, int]:
    """Return the host, without brackets, and the port of an address host:port.

    Raises:
        ConfigError: The value has another form. The message has the setting's name, and repeats the value unless it may
            contain a login.
    """
    if (place := split_place(value)) is None:
        do = "Write an IPv6 address in brackets, and no scheme, path, space or login"
        raise _wrong_form(name, value, f"host:port, such as {EXAMPLES}", do)
    return place


def check_host(name: str, value: str) -> None:
    """Raise a ConfigError unless the value is a host without a port, such as one to listen on; IPv6 has no brackets."""
    if not (_is_address(value, IPv6Address) or _is_name_or_ipv4(value)):
        expected = "a host without a port, such as 0.0.0.0, :: or coordinator.example"
        raise _wrong_form(name, value, expected, "Write an address or a name alone")


def check_web_address(name: str, value: str) -> None:
    """Check that the value is the address of a web server: http:// or https://, a host, and maybe a port and a path.

    Raises:
        ConfigError: It is not. A login is refused too, since the address is recorded.
    """
    parts = _WEB.fullmatch(value)
    if parts is None or split_place(parts[1], port=443) is None:
        expected = "a web address, such as https://gateway.example/v1, without a login"
        do = "Write the scheme, and %20 for a space; a key stands in a variable of the environment"
        raise _wrong_form(name, value, expected, do)


def split_place(value: str, *, port: int | None = None) -> tuple[str, int] | None:
    """Return the host, without brackets, and the port of host:port; None if the value has another form.

    A value without a port has the given one; None if each value must have one.
    """
    if port is not None and (value.endswith("]") or ":" not in value):
        value = f"{value}:{port}"
    parts = _PLACE.fullmatch(value)
    if parts is None or int(parts[3]) not in _PORTS:
        return None
    valid = _is_address(parts[1], IPv6Address) if parts[1] else _is_name_or_ipv4(parts[2])
    return (parts[1] or parts[2], int(parts[3])) if valid else None


def _is_name_or_ipv4(host: str) -> bool:
    labels = host.split(".")
    if labels[-1].isascii() and labels[-1].isdigit():  # no name ends so, but 1.2.3 and 256.0.0.1 do
        return _is_address(host, IPv4Address)
    return len(host) <= _LONGEST_NAME and all(map(_LABEL.fullmatch, labels))


def _is_address(host: str, kind: type[IPv4Address | IPv6Address]) -> bool:
    try:
        kind(host)
    except AddressValueError:
        return False
    return "%" not in host  # names an interface of this machine alone


def _wrong_form(name: str, value: str, expected: str, do: str) -> ConfigError:
    """Return the error for a value of another form; its advice is `do`, or the ASCII form of other letters."""
    if letters := re.search(r"[^\s/:@\[\]]*[^\x00-\x7f\s/:@\[\]][^\s/:@\[\]]*", value):
        do = f"Write the name in its ASCII form, {_ascii_form(letters[0]) or 'which begins with xn--'}"
    got = "one with @, which may be a login" if "@" in value else repr(value[:_LONGEST_NAME])
    return ConfigError(name, expected=expected, got=got, do=do)


def _ascii_form(host: str) -> str:
    """Return the ASCII form of a name with other letters; empty if different programs have different forms of it."""
    try:
        form = host.encode("idna").decode("ascii")
        return form if form.encode("ascii").decode("idna") == host.lower() else ""  # not so for ß
    except UnicodeError:
        return ""
