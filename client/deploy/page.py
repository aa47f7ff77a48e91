"""`caucus-party page`: a hospital's page on this machine, for people who decide on plans without a terminal.

It is served on 127.0.0.1, which other machines can reach through an SSH tunnel, or on another address, for which a
certificate and a password are then required (`common/page/address.py`). The link is printed once and opens the page in
one browser (`common/page/access.py`).
"""

import argparse
from collections.abc import Iterator
from functools import partial

from client.deploy.settings import HospitalSettings
from common.page.address import add_options, address_of
from common.system.commands import Commands, add_command, add_folder
from common.system.extras import needs
from common.validate import integers_in

PORT = 8470


def register(commands: Commands) -> None:
    """Add the `page` command."""
    parser = add_command(
        commands,
        "page",
        _page,
        summary="a page in a browser: plans to decide, budget, limits, what runs, a release looked at",
        description="Serve this hospital's page on 127.0.0.1 until Ctrl-C, and print the link that opens it: once, "
        "within ten minutes, in one browser, for eight hours. The page does what approve, status, ledger and audit "
        "do, with the rights and the name of this account. From another machine: "
        "ssh -o ExitOnForwardFailure=yes -L 8470:127.0.0.1:8470 MACHINE.",
        example="caucus-party page hospital",
    )
    add_folder(parser, "caucus-party")
    parser.add_argument("--port", type=int, default=PORT, help="on 127.0.0.1; 0 for any that is free (%(default)s)")
    add_options(parser)


def _page(chosen: argparse.Namespace) -> Iterator[str]:
    needs("caucus-party page", "jinja2", "starlette", "uvicorn", extra="page")
    from client.page.app import hospital_page
    from client.page.release import forget
    from common.page.serve import serve_page

    integers_in(0, 2**16 - 1, port=chosen.port)
    address = address_of(chosen)
    HospitalSettings.load(chosen.folder)  # a wrong folder is told here, not in a browser
    forget(chosen.folder)  # a page that was killed may have left something
    try:
        yield from serve_page(partial(hospital_page, chosen.folder), chosen.port, address)
    finally:
        forget(chosen.folder)
