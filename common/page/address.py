"""The `--address` option, which serves a page to other machines; without it, a page is served only on loopback.

`--address`, `--certificate`, `--key` and `--password-file` must be given together: without a certificate for TLS the
link and the cookie could be read in transit, and without a password anybody who sees the link, perhaps in a message,
could open the page.

Anybody who reaches the port can occupy all connections that the server accepts (`app.BUSIEST`) without any password,
and so lock everybody out: put a firewall or a VPN in front that admits only the hospital's own people.
"""

import argparse
import ipaddress
import socket
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from common.address import host_and_port
from common.errors import ConfigError
from common.system.commands import Commands, Lines, add_command, add_folder
from common.system.files import check_secret
from common.validate import integers_in

OPTIONS = ("address", "certificate", "key", "password_file")
SHORTEST = 12
"""Minimum length of a password, in characters; a browser has five tries (`access.py`)."""
HTTPS = 443
"""Port that browsers omit from an address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The address of a page for other machines, with the certificate, key and password that protect it.

    Attributes:
        host: Name or IP address that browsers use, and that belongs to this machine.
        port: Port.
        certificate: PEM file with the certificate of the host and the certificates that signed it.
        key: File with the certificate's private key, which only this account may read.
        password: Password that opens the page together with the link.
    """

    host: str
    port: int
    certificate: Path
    key: Path
    password: str = field(repr=False)

    @property
    def named(self) -> str:
        """The host and port as a browser sends them in `Host` and `Origin`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == HTTPS else f"{host}:{self.port}"


def add_page_command(
    commands: Commands, program: str, lines: Lines, *, owner: str, port: int, summary: str, does: str
) -> None:
    """Add the `page` command of a program.

    The default port differs between the programs, so that both pages can be open on one machine. `owner` is "hospital"
    or "coordinator", and `does` a sentence on what the page does.
    """
    parser = add_command(
        commands,
        "page",
        lines,
        summary=summary,
        description=f"Serve this {owner}'s page on 127.0.0.1 until Ctrl-C, and print the link that opens it: once, "
        f"within ten minutes, in one browser, for eight hours. {does} From another machine: "
        f"ssh -o ExitOnForwardFailure=yes -L {port}:127.0.0.1:{port} MACHINE.",
        example=f"{program} page {owner}",
    )
    add_folder(parser, program)
    parser.add_argument("--port", type=int, default=port, help="on 127.0.0.1; 0 for any that is free (%(default)s)")
    parser.add_argument("--address", metavar="HOST:PORT", help="open to other machines; needs the three options below")
    parser.add_argument("--certificate", metavar="FILE", type=Path, help="certificate of HOST, in PEM form")
    parser.add_argument("--key", metavar="FILE", type=Path, help="its key, with mode 0600")
    parser.add_argument("--password-file", metavar="FILE", type=Path, help="a password in one line, with mode 0600")


def address_of(chosen: argparse.Namespace) -> Address | None:
    """Return the address that the options specify; None if no option is given: the page is then served on loopback.

    Raises:
        ConfigError: The port is out of range, options are missing, the address is not one that a browser can name, or a
            file is invalid or accessible to other accounts.
    """
    integers_in(0, 2**16 - 1, port=chosen.port)
    given = {name: getattr(chosen, name) for name in OPTIONS}
    missing = [f"--{name.replace('_', '-')}" for name, value in given.items() if value is None]
    if len(missing) == len(OPTIONS):
        return None
    if missing:
        expected = "--address, --certificate, --key and --password-file together"
        do = "Without all four the page is for this machine alone; an SSH tunnel leads to it from another one"
        raise ConfigError("address of the page", expected=expected, got=f"no {' and no '.join(missing)}", do=do)
    host, port = host_and_port("--address", chosen.address)
    if _is_every_address(host):
        raise ConfigError("--address", expected="one name or address, as browsers will use it", got=chosen.address)
    check_secret(chosen.key)
    check_secret(chosen.password_file)
    _check_pair(chosen.certificate, chosen.key)
    password = chosen.password_file.read_text("utf-8").strip()
    if len(password) < SHORTEST or not password.isprintable():
        expected, do = f"one line of at least {SHORTEST} printable characters", "Write one into this file"
        raise ConfigError("password", expected=expected, got="another", where=chosen.password_file, do=do)
    return Address(host=host.lower(), port=port, certificate=chosen.certificate, key=chosen.key, password=password)


def _is_every_address(host: str) -> bool:
    """Return whether the system takes this host, such as 0, 0x0 or 0.0, for all addresses of the machine."""
    try:
        resolved = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:  # serving it fails, and says so
        return False
    addresses = [ipaddress.ip_address(place[0]) for *_, place in resolved]
    return any((getattr(address, "ipv4_mapped", None) or address).is_unspecified for address in addresses)


def _check_pair(certificate: Path, key: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key, password="")  # without one it would ask at the terminal
    except OSError as error:  # an SSLError is one
        got = error.strerror or type(error).__name__
        do = "Give a certificate in PEM form and its key, without a passphrase"
        raise ConfigError("the certificate and its key cannot be used", got=got, where=certificate, do=do) from None
