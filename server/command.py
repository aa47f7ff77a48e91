"""`caucus-coordinator`: what a coordinator does from the command line; `caucus-coordinator --help` lists the commands.

Each is described where it is made: the module of `MODULES` that has its name.
"""

import sys
from collections.abc import Sequence

from common.system.commands import parser, run
from common.system.extras import program_needs
from common.system.progress import shown_without_a_log
from common.versions import versions

MODULES = {
    "server.deploy.create": ("init", "renew", "invite"),
    "server.deploy.serve": ("serve", "stop"),
    "server.deploy.enrolment": ("enrol", "remove"),
    "server.deploy.plan_command": ("plan",),
    "server.deploy.check": ("check",),
    "server.deploy.runs": ("run", "resume", "follow", "cancel"),
    "server.deploy.send": ("send",),
    "server.deploy.steer": ("steer",),
    "server.deploy.status": ("status",),
    "server.page.command": ("page",),
    "server.deploy.results": ("evaluate", "report"),
    "server.deploy.classifier": ("classifier",),
    "server.deploy.publish": ("publish",),
    "server.deploy.models": ("models",),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code, one of those that `common/system/commands.py` lists."""
    program_needs("caucus-coordinator", "hydra", extra="coordinator")
    from server.failure import WRONG_SETTINGS, summary

    made = parser(
        "caucus-coordinator",
        MODULES,
        arguments,
        versions=versions(),
        description="Coordinate a federation. Settings are Hydra overrides, the same as for caucus-simulate.",
        example="caucus-coordinator plan privacy.epsilon=4 federation.parties=10",
    )
    with shown_without_a_log():
        return run(made, arguments, wrong=WRONG_SETTINGS, one_line=summary)


if __name__ == "__main__":
    sys.exit(main())
