"""The party service as a process of its own: it alone reads records, keys and ledger, and it has no network.

    python -m client.deploy.host FOLDER

It listens on a Unix socket in the folder, and is started by `caucus-party start` or by a unit of its own.
"""

import logging
import os
import pwd
import shutil
import signal
import sys
from pathlib import Path

from client import records
from client.approvals import Approvals
from client.audit_log import AuditLog
from client.channel import serve
from client.deploy.settings import SOCKET, HospitalSettings
from client.service import PartyService
from common.errors import CaucusError
from common.system.files import check_records


def service(settings: HospitalSettings) -> PartyService:
    """The hospital's party, built from its own files alone.

    Raises:
        ConfigError: A key or the roster is missing, open to others or wrong.
        DataError: The records are missing, open to others or wrong.
        LedgerError: The ledger was edited, or is older than its noted head.
    """
    check_records(settings.records)
    identity, roster = settings.identity(), settings.roster()
    key = (settings.private / "identity.key").read_bytes()
    # First the digest, then the records: a change between the two is noticed at the first question.
    approvals = Approvals(settings.private, approval=settings.approval, records=settings.records, key=key)
    noted_head = settings.noted_head
    return PartyService(
        party=settings.number(roster),
        private=records.read(settings.records, may_be_empty=True),
        encoder=settings.loaded_encoder(),
        limits=settings.party.limits,
        ledger=noted_head.opened(settings.private / "ledger.db"),
        noted_head=noted_head,
        writers=settings.party.writers(),
        identity=identity,
        roster=roster,
        approvals=approvals,
        audit_log=AuditLog(settings.private),
    )


def main() -> int:
    """Serve until SIGTERM or SIGINT."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    log = logging.getLogger("caucus.party")
    try:
        settings = HospitalSettings.load(Path(sys.argv[1]))
        os.chdir(settings.folder)
        Path("run/party.sock").unlink(missing_ok=True)
        server = serve({0: service(settings)}, SOCKET, shared=settings.relay_user is not None)
    except (CaucusError, OSError) as error:
        log.error("%s", error)  # noqa: TRY400 the line is for an operator
        return 1
    if settings.relay_user is not None and os.geteuid() == 0:
        shutil.chown("run/party.sock", group=pwd.getpwnam(settings.relay_user).pw_gid)
    for stop in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stop, lambda *_: server.stop(grace=1))
    log.info("party service ready")
    server.wait_for_termination()
    return 0


if __name__ == "__main__":
    sys.exit(main())
