"""`caucus-coordinator`: what a coordinator does from the command line.

caucus-coordinator models [NAME ...] [--from FOLDER]   fetch language models and encoders, to be named in settings
caucus-coordinator init FOLDER --address HOST:PORT     authority, certificate, invitation.json for the hospitals
caucus-coordinator serve FOLDER                        SuperLink behind the front door, until stopped
caucus-coordinator enrol FOLDER PARTY.json             add a hospital
caucus-coordinator remove FOLDER NAME                  revoke its key
caucus-coordinator plan [OVERRIDE ...]                 ε, noise, signal of each query and the forecast before any
                                                       private data is accessed; --signal 3 with --records 300 prints
                                                       the least ε for this signal, and with --epsilon 4 the least
                                                       number of records
caucus-coordinator check [--json] [OVERRIDE ...]       parts of a run, with digests, and what is missing
caucus-coordinator run FOLDER NAME [OVERRIDE ...]      run with all enrolled hospitals
caucus-coordinator resume FOLDER NAME                  resume after a crash, an approval or `cancel`
caucus-coordinator follow FOLDER NAME                  print the log of a run until it ends
caucus-coordinator cancel FOLDER NAME                  stop one run
caucus-coordinator send FOLDER NAME                    send a complete run's texts to the hospitals that answered it
caucus-coordinator status FOLDER [--json]              hospitals, nodes, runs
caucus-coordinator page FOLDER [--port N]              a page in a browser on this machine: runs, hospitals, a new run
caucus-coordinator steer RUN [OVERRIDE ...]            further texts from a run's census, with other models, without
                                                       asking any party
caucus-coordinator evaluate RUN --test FILE            figures of a run on texts that belong to no party
caucus-coordinator report RUN                          rewrite a run's report
caucus-coordinator classifier RUN                      write the classifiers that a run's census makes possible
caucus-coordinator publish RUN --license LICENCE       write a data set for a hub, with a card; nothing is uploaded
caucus-coordinator renew FOLDER                        a new server certificate
caucus-coordinator invite FOLDER                       rewrite bundle, invitation and roster, after an upgrade
caucus-coordinator stop FOLDER
"""

import sys
from collections.abc import Sequence

from common.system.commands import parser, run
from common.system.extras import program_needs
from common.system.warned_once import shown_without_a_log
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
