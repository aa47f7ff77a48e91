"""The party service, a separate process: only this process reads records, keys and ledger, and it has no network.

    python -m client.deploy.host FOLDER

It listens on a Unix socket in the folder, and is started by `caucus-party start` or by a separate systemd unit. At its
start it reads the records, keys, roster and models once and embeds the records. It reads limits and approval again
whenever a plan is opened or a question is asked (`CurrentTerms`).
"""

import logging
import os
import pwd
import signal
import sys
from concurrent.futures import Future
from dataclasses import fields
from importlib import import_module
from pathlib import Path

from client import records
from client.admission import HospitalTerms
from client.audit_log import AuditLog
from client.channel import READY, SOCKET, serve_socket
from client.deploy.settings import KEY_BYTES, HospitalSettings
from client.releases import Releases
from client.schedule import Schedule
from client.service import PartyService
from client.session import RefusalError
from common.errors import CaucusError
from common.messages import Parcel, Reason
from common.rng import secure_bytes
from common.system.enrolment import RosterFile
from common.system.files import SECRET, check_records, write_atomic
from common.system.log_lines import LOG_FORMAT

log = logging.getLogger("caucus.party")


class CurrentTerms:
    """The terms that `client.yaml` contains now; all other settings must be the same as when the service started.

    A key that the file has had since the start must still be there: a default may be a looser limit, and a file that
    was cut off, as on a full disk, looks like one in which the last limits were deleted.

    Args:
        settings: Settings, as read at the service's start.
        roster: Roster, as read at the service's start.
    """

    def __init__(self, settings: HospitalSettings, roster: RosterFile) -> None:
        self._settings = settings
        self._roster = roster
        self._written = settings.written

    def __call__(self) -> HospitalTerms:
        """Read the hospital's files, and return the terms that they now contain.

        Raises:
            RefusalError: A file cannot be read or is invalid, or a setting that needs a restart has changed; the reason
                is SETTINGS.
        """
        try:
            now, roster = HospitalSettings.load(self._settings.folder), self._settings.roster_file()
        except (CaucusError, OSError, UnicodeDecodeError) as error:
            problem = error if isinstance(error, CaucusError) else type(error).__name__
            raise RefusalError(Reason.SETTINGS, f"client.yaml or roster.json cannot be read: {problem}") from error
        before, after = _fixed(self._settings, self._roster), _fixed(now, roster)
        changed = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
        if changed:
            what = f"settings have changed since this service started: {', '.join(changed)}"
            raise RefusalError(Reason.SETTINGS, what, do="Restart it: only approval and limits may change meanwhile")
        if gone := sorted(self._written - now.written):
            raise RefusalError(
                Reason.SETTINGS,
                "client.yaml lacks lines that it had since this service started",
                expected="every key, with another value if need be",
                got=f"none of {', '.join(gone)}",
                do="Write them again, or restart the service if they were deleted on purpose",
            )
        self._written |= now.written
        return HospitalTerms(limits=now.party.limits, approval=now.approval)


def _fixed(settings: HospitalSettings, roster: RosterFile) -> dict[str, object]:
    """Return the settings that a running service cannot change, keyed by name."""
    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    del values["approval"], values["party"], values["written"]
    apart = settings.party.limits.separate_data_sets
    return {**values, **settings.party.sections, "limits.separate_data_sets": apart, "roster.json": roster}


class PendingService:
    """A party service that is still starting, which may take hours; messages wait for it and are not lost."""

    def __init__(self) -> None:
        self.built: Future[PartyService] = Future()

    def handle(self, parcel: Parcel) -> Parcel:
        """Wait until the service has started, then return its reply to one parcel."""
        return self.built.result().handle(parcel)


def service(settings: HospitalSettings) -> PartyService:
    """Return the hospital's party, built from its own files alone.

    Raises:
        ConfigError: A key, the roster or the section `limits` is missing, open to others or invalid.
        DataError: The records are missing, open to others or invalid.
        LedgerError: The ledger was edited, or is older than its noted head.
    """
    settings.check_limits()
    check_records(settings.records)
    # What a plan costs is computed with this, which takes longer to load than the first opening may take.
    import_module("common.privacy.losses")
    noted_head = settings.noted_head
    ledger = noted_head.opened(settings.ledger)  # an older one is refused before anything is embedded
    identity, roster_file, roster = settings.identity(), settings.roster_file(), settings.roster()
    terms = CurrentTerms(settings, roster_file)
    # First the digest, then the records: a change between the two is noticed at the first question.
    key = settings.private / "records.key"
    if not key.exists():
        write_atomic(key, secure_bytes(KEY_BYTES), mode=SECRET)
    approvals = settings.approvals()
    private = settings.read_records(may_be_empty=True)
    number, encoder = settings.number(roster), settings.loaded_encoder()
    declared = roster_file.parties[number].max_records
    if len(private) > declared:  # to refuse would tell the coordinator
        log.warning("more records than this hospital declares: caucus-party check says what that means")
    return PartyService(
        party=number,
        private=records.embed_records(private, encoder, settings.headings),
        declared=declared,
        terms=terms,
        ledger=ledger,
        noted_head=noted_head,
        writers=settings.party.writers(),
        identity=identity,
        roster=roster,
        names=roster_file.names,
        approvals=approvals,
        audit_log=AuditLog(settings.private),
        schedule=Schedule(declared),
        releases=Releases(settings.private, ledger),
    )


def main() -> int:
    """Serve until SIGTERM or SIGINT."""
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT)
    starting = PendingService()
    try:
        settings = HospitalSettings.load(Path(sys.argv[1]))
        os.chdir(settings.folder)
        Path("run/party.sock").unlink(missing_ok=True)
        server = serve_socket({0: starting}, SOCKET, shared=settings.relay_user is not None)
        if settings.relay_user is not None and os.geteuid() == 0:
            os.chown("run/party.sock", -1, pwd.getpwnam(settings.relay_user).pw_gid, follow_symlinks=False)
        roster, party = settings.roster_file(), service(settings)
        starting.built.set_result(party)
    except (CaucusError, OSError) as error:
        log.error("%s", error)  # noqa: TRY400 the line is for an operator
        return 1
    finally:
        starting.built.cancel()  # a message that waits for a party that could not be built must not keep the process
    for stop in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stop, lambda *_: server.stop(grace=1))
    write_atomic(Path(READY), f"{roster.fingerprint}\n{party.records_digest}".encode())
    log.info("party service ready: %s", settings.name)
    server.wait_for_termination()
    party.stop()  # else the process lasts as long as a reply waits for its time
    return 0


if __name__ == "__main__":
    sys.exit(main())
