"""`caucus-coordinator page`: the coordinator's page on this machine.

The page is served like a hospital's page, on 127.0.0.1, or on an address that is specified with a certificate and a
password (`common/page/address.py`). The runs that it starts are executed by Flower, so they continue when the page is
closed.
"""

import argparse
from collections.abc import Iterator
from functools import partial

from common.page.address import add_options, address_of
from common.system.commands import Commands, add_command, add_folder
from common.system.extras import needs
from common.validate import integers_in
from server.deploy.settings import CoordinatorSettings

PORT = 8471
"""Default port, which differs from that of a hospital's page, so that both can be open on one machine."""


def register(commands: Commands) -> None:
    """Add the `page` command."""
    parser = add_command(
        commands,
        "page",
        _page,
        summary="a page in a browser: runs, hospitals, a plan drafted and started",
        description="Serve this coordinator's page on 127.0.0.1 until Ctrl-C, and print the link that opens it: once, "
        "within ten minutes, in one browser, for eight hours. The page does what status, plan, run, resume, cancel, "
        "follow and send do, with the rights of this account; runs go on without it. From another machine: "
        "ssh -o ExitOnForwardFailure=yes -L 8471:127.0.0.1:8471 MACHINE.",
        example="caucus-coordinator page coordinator",
    )
    add_folder(parser, "caucus-coordinator")
    parser.add_argument("--port", type=int, default=PORT, help="on 127.0.0.1; 0 for any that is free (%(default)s)")
    add_options(parser)


def _page(chosen: argparse.Namespace) -> Iterator[str]:
    needs("caucus-coordinator page", "jinja2", "starlette", "uvicorn", extra="coordinator")
    integers_in(0, 2**16 - 1, port=chosen.port)
    address = address_of(chosen)
    CoordinatorSettings.load(chosen.folder)  # a wrong folder is told here, not in a browser
    from common.page.serve import serve_page
    from server.page.app import coordinator_page

    yield from serve_page(partial(coordinator_page, chosen.folder), chosen.port, address)
