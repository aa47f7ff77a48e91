"""`caucus-coordinator page`: the coordinator's page on this machine.

The page is served like a hospital's page, on 127.0.0.1, or on an address that is specified with a certificate and a
password (`common/page/address.py`). The runs that it starts are executed by Flower, so they continue when the page is
closed.
"""

import argparse
from collections.abc import Iterator
from functools import partial

from common.page.address import add_page_command, address_of
from common.system.commands import Commands
from common.system.extras import needs
from server.deploy.settings import CoordinatorSettings


def register(commands: Commands) -> None:
    """Add the `page` command."""
    add_page_command(
        commands,
        "caucus-coordinator",
        _page,
        owner="coordinator",
        port=8471,
        summary="a page in a browser: runs, hospitals, a plan drafted and started",
        does="The page does what status, plan, run, resume, cancel, follow and send do, with the rights of this "
        "account; runs go on without it.",
    )


def _page(chosen: argparse.Namespace) -> Iterator[str]:
    needs("caucus-coordinator page", "jinja2", "starlette", "uvicorn", extra="coordinator")
    address = address_of(chosen)
    CoordinatorSettings.load(chosen.folder)  # a wrong folder is told here, not in a browser
    from common.page.app import serve_page
    from server.page.app import coordinator_page

    yield from serve_page(partial(coordinator_page, chosen.folder), chosen.port, address)
