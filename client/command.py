"""`caucus-party`: the commands of a hospital, which `caucus-party --help` lists with a sentence on each.

Each is described where it is made: the module of `MODULES` that has its name.
"""

import sys
from collections.abc import Sequence

from common.system.commands import parser, run
from common.versions import versions

MODULES = {
    "client.deploy.create": ("init",),
    "client.deploy.roster": ("roster",),
    "client.deploy.check": ("check",),
    "client.deploy.start": ("start", "stop"),
    "client.deploy.status": ("status",),
    "client.approval.command": ("approve",),
    "client.deploy.page": ("page",),
    "client.deploy.renewal": ("rotate", "invitation", "refresh"),
    "client.deploy.ledger": ("ledger",),
    "client.deploy.models": ("models",),
    "client.deploy.audit": ("audit",),
    "client.deploy.leave": ("leave",),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code, one of those that `common/system/commands.py` lists."""
    made = parser(
        "caucus-party",
        MODULES,
        arguments,
        versions=versions(),
        description="Commands of a hospital.",
        example="caucus-party check hospital",
    )
    return run(made, arguments)


if __name__ == "__main__":
    sys.exit(main())
