"""`caucus-party page`: a hospital's page on this machine, for people who decide on plans without a terminal.

It is served on 127.0.0.1, which other machines can reach through an SSH tunnel, or on another address, for which a
certificate and a password are then required (`common/page/address.py`). The link is printed once and opens the page in
one browser (`common/page/access.py`).
"""

import argparse
from collections.abc import Iterator
from functools import partial

from client.deploy.settings import HospitalSettings
from common.page.address import add_page_command, address_of
from common.system.commands import Commands
from common.system.extras import needs


def register(commands: Commands) -> None:
    """Add the `page` command."""
    add_page_command(
        commands,
        "caucus-party",
        _page,
        owner="hospital",
        port=8470,
        summary="a page in a browser: plans to decide, budget, limits, what runs, a release looked at",
        does="The page does what approve, status, ledger and audit do, with the rights and the name of this account.",
    )


def _page(chosen: argparse.Namespace) -> Iterator[str]:
    needs("caucus-party page", "jinja2", "starlette", "uvicorn", extra="page")
    from client.page.app import hospital_page
    from client.page.release import forget
    from common.page.app import serve_page

    address = address_of(chosen)
    HospitalSettings.load(chosen.folder)  # a wrong folder is told here, not in a browser
    forget(chosen.folder)  # a page that was killed may have left something
    try:
        yield from serve_page(partial(hospital_page, chosen.folder), chosen.port, address)
    finally:
        forget(chosen.folder)
