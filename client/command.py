"""`caucus-party`: the commands of a hospital.

caucus-party init FOLDER --name NAME --records FILE --invitation FILE   keys, settings, party.json for the coordinator
caucus-party roster FOLDER FILE [--yes]  accept the coordinator's roster; shows what has changed, and asks first
caucus-party check FOLDER [--offline] [--json]   problems and how to fix them; which data leave, and which never do
caucus-party start FOLDER [--until-idle 30m]   party service, SuperNode and relay, until told to stop, or until idle
caucus-party status FOLDER [--json]      what runs, what awaits approval, what was spent
caucus-party approve FOLDER [--yes]      show the plans that await approval, and decide; --refused, --run: decide again
caucus-party page FOLDER [--port N]      a page in a browser on this machine: plans to decide, budget, limits, status
caucus-party stop FOLDER
caucus-party refresh FOLDER FILE         take the records of a database again, by the query of init --records
caucus-party models [NAME ...] [--from FOLDER]   fetch the encoder of real runs (minilm), or any model that is listed
caucus-party rotate FOLDER               new keys; ledger, settings and log stay
caucus-party invitation FOLDER FILE      accept a new invitation: the coordinator's address, bundle and authority
caucus-party audit FOLDER TEXTS --control FILE   whether texts disclose records more often than held-back ones; with
                                         --run NAME in place of TEXTS, the texts that the coordinator sent for that run
caucus-party ledger show FILE [--delta D] [--json]     what was charged in each run, and the total cost
caucus-party ledger verify FILE [--head HEX]           whether the file is intact; prints its head, to note elsewhere
caucus-party ledger export FILE                        its events as JSON Lines; no answers, keys or record digests
caucus-party ledger backup FILE TO                     copy the whole file, also while the service writes it
caucus-party ledger accept FOLDER [--lost EPSILON]     continue with an older ledger, and charge what it lacks
caucus-party leave FOLDER [--yes]        end this hospital's part: ledger and audit log sealed, everything else deleted
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
    "client.deploy.approve": ("approve",),
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
