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
from client.deploy.settings import SOCKET, Settings
from client.desk import Desk
from client.service import PartyService, serve
from common.errors import CaucusError, ConfigError
from common.files import check_records, check_secret
from common.privacy.ledger import Ledger
from common.secagg.identity import Identity, Roster


def service(settings: Settings) -> PartyService:
    """The hospital's party, built from its own files alone.

    Raises:
        ConfigError: A key or the roster is missing, open to others or wrong.
        DataError: So are the records.
    """
    check_secret(settings.private / "identity.key")
    check_records(settings.records)
    key = (settings.private / "identity.key").read_bytes()
    identity, roster = Identity(key), read_roster(settings)
    # First the digest, then the records: a change between the two is noticed at the first question.
    desk = Desk(settings.private, approval=settings.approval, records=settings.records, key=key)
    return PartyService(
        party=number(identity, roster),
        private=records.read(settings.records, may_be_empty=True),
        encoder=settings.loaded_encoder(),
        limits=settings.limits,
        ledger=Ledger(settings.private / "ledger.db"),
        writers=settings.writers(),
        identity=identity,
        roster=roster,
        desk=desk,
    )


def read_roster(settings: Settings) -> Roster:
    """Everybody's identities, from this hospital's own file."""
    path = settings.folder / "roster.json"
    if not path.is_file():
        raise ConfigError("roster", expected="roster.json, from the coordinator", got="none", where=settings.folder)
    return Roster.from_json(path.read_bytes())


def number(identity: Identity, roster: Roster) -> int:
    """This hospital's number: where the roster has its key."""
    for party, key in roster.keys.items():
        if key == identity.public:
            return party
    raise ConfigError(
        "roster", expected="one with this hospital's key", got="another", do="Send party.json to the coordinator"
    )


def main() -> int:
    """Serve until told to stop."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    log = logging.getLogger("caucus.party")
    try:
        settings = Settings.load(Path(sys.argv[1]))
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
