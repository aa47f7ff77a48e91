"""The checks of `caucus-party check`; they are independent, so that one failed check does not hide another problem.

Quick checks, and checks for problems that the coordinator's side must fix, come first; slow checks come last. Only the
check of the roster needs the roster. The numbers of records and labels are for this hospital only and do not leave it.
"""

import os
import pwd
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

from client.approval.entries import approvals
from client.audit_log import LARGEST_AUDIT
from client.deploy import connection, known_records
from client.deploy.check_advice import advice_on_charges, advice_on_labels, advice_on_users
from client.deploy.create import MOST_BY_DEFAULT, shipped_limits
from client.deploy.roster import RESTART, running_records, running_roster
from client.deploy.settings import SIDES, HospitalSettings
from client.flower.noted_connection import CONNECTED_BEFORE, STILL_COUNTED, node_state
from client.records import shown_labels
from client.releases import releases
from client.writers import causal_model
from common.domain import Record
from common.errors import CaucusError, ConfigError
from common.ledger.ledger import MOST_KEPT
from common.phrases import quote_name
from common.secagg.identity import Roster
from common.system import processes
from common.system.certificates import SOON
from common.system.files import check_closed, check_records, check_secret

PASSED, WARNING, PROBLEM, WAITING, SKIPPED = "passed", "warning", "problem", "waiting", "skipped"

OF_COORDINATOR = ("connection", "clock", "node's key", "coordinator's certificate", "coordinator's authority")
"""Names of the checks that concern the connection to the coordinator."""
LOOSER = {
    "lifetime_epsilon": "or all runs together may cost more epsilon",
    "separate_data_sets": "or a refusal reveals whether data sets share a record",
    "min_survivors": "or the coordinator may see this hospital's own answer",
    "malicious_coordinator": "or the coordinator is trusted to follow the protocol",
    "unsafe_no_noise": "unless this data is not private",
    "unsafe_unproven": "unless this data is not private",
}
"""What a looser limit than that of a new hospital means, keyed by limit."""
_MORE_THAN_DECLARED = (
    "There are more records than this hospital declares. It answers, since silence would tell, but it limits its "
    "counts to what the declared number can reach, and replies may be late. caucus-party rotate --max-records N "
    "declares more, which is public"
)
LEAST_ROOM = 16 * 2**20
"""Number of free bytes below which the disk counts as full: the next answers, with their charges, may not fit."""

_RELAY_SECONDS = 60.0
"""Seconds within which a try of the relay's account must end."""
_AS_RELAY = """
from importlib.util import find_spec
from os import path
open("node/node.key").close()
if path.exists("node/proxy.login"):
    open("node/proxy.login").close()
raise SystemExit(None if find_spec("client.flower.relay") and find_spec("flwr") else "Caucus is not installed for it")
"""
"""Program with which the relay's account shows that it may execute this installation and read its key."""


@dataclass(frozen=True, slots=True)
class PreflightFinding:
    """The result of one check.

    Attributes:
        result: "passed", "warning", "problem", "waiting" (for somebody else to act), or "skipped".
        detail: Details of what was found.
        fix: Advice, if there is any.
        check: The check's name, which `findings` fills in.
    """

    result: str
    detail: str
    fix: str = ""
    check: str = ""


_UNCONNECTED = PreflightFinding(SKIPPED, "no connection")


def findings(
    settings: HospitalSettings, *, offline: bool = False, only: Collection[str] | None = None
) -> Iterator[PreflightFinding]:
    """Run the checks, all or `only` those of these names, and yield each finding as soon as it is available.

    Checks that need the coordinator are skipped if `offline`.
    """
    preflight = _Preflight(settings, offline=offline)
    for check, (probe, fix) in CHECKS.items():
        if only is not None and check not in only:
            continue
        try:
            finding = probe(preflight)
        except CaucusError as error:
            finding = PreflightFinding(PROBLEM, error.problem, str(error.do or fix))
        except OSError as error:
            finding = PreflightFinding(PROBLEM, f"{error.strerror}: {error.filename}", fix)
        yield replace(finding, check=check)


class _Preflight:
    """The checks of one hospital; they store results that later checks need."""

    def __init__(self, settings: HospitalSettings, *, offline: bool) -> None:
        self._settings = settings
        self._offline = offline
        self._connection: connection.Connection | None = None
        self._known = False
        self._records: list[Record] | None = None

    def settings(self) -> PreflightFinding:
        return PreflightFinding(
            PASSED,
            f"client.yaml; identity of the coordinator's code, which never runs here: {self._settings.bundle[:16]}",
        )

    def secrets(self) -> PreflightFinding:
        settings = self._settings
        settings.identity()
        for name in ("node.key", "superexec.secret"):
            check_secret(settings.node / name)
        if (settings.private / "records.key").exists():  # else the service makes it
            settings.records_key()
        check_closed(settings.private)
        return PreflightFinding(PASSED, "closed to other accounts")

    def connection(self) -> PreflightFinding:
        if self._offline:
            return PreflightFinding(SKIPPED, "--offline")
        self._connection = connection.connect(self._settings)
        through = f", through {self._connection.via}" if self._connection.via else ""
        return PreflightFinding(PASSED, f"{self._settings.coordinator}, {self._connection.secure}{through}")

    def clock(self) -> PreflightFinding:
        if self._connection is None:
            return _UNCONNECTED
        return PreflightFinding(PASSED, connection.check_clock(self._connection.ahead))

    def node_key(self) -> PreflightFinding:
        if self._connection is None:
            return _UNCONNECTED
        connection.check_node_key(self._settings)
        self._known = True
        return PreflightFinding(PASSED, "the coordinator accepts it")

    def node(self) -> PreflightFinding:
        state = node_state(self._settings.folder, processes.child_states(self._settings.folder, SIDES["both"]))
        if not state.runs:
            return PreflightFinding(SKIPPED, "not running: caucus-party start")
        if state.connected:
            return PreflightFinding(PASSED, str(state))
        if state.reason == STILL_COUNTED and self._known:
            return PreflightFinding(WAITING, CONNECTED_BEFORE, "Wait a minute: the node tries again by itself")
        return PreflightFinding(
            WARNING, f"not connected: {state.reason or 'starting'}", "Wait a minute, then check again"
        )

    def certificate(self) -> PreflightFinding:
        if self._connection is None:
            return _UNCONNECTED
        return _days(self._connection.expires, "Ask the coordinator to run caucus-coordinator renew")

    def authority(self) -> PreflightFinding:
        expires = self._settings.authority().not_valid_after_utc
        return _days(expires, "Ask the coordinator for an invitation of a new authority")

    def records(self) -> PreflightFinding:
        check_records(self._settings.records)
        remarks = list[str]()
        self._records = self._settings.read_records(may_be_empty=True, remarks=remarks)
        users = {record.user for record in self._records} - {None}
        of = f" of {len(users)} users" if users else ""
        noise = "" if self._records else "; it contributes noise"
        declared = self._settings.party_file().max_records
        public = f"at most {declared:,} are public"
        detail = "; ".join([f"{len(self._records)} records{of} (known only here; {public}){noise}", *remarks])
        advice = advice_on_users(self._records, self._settings.party.limits.unit)
        if len(self._records) > declared:
            advice.append(_MORE_THAN_DECLARED)
        # As in a folder that an older version made.
        if declared > 100 * max(len(self._records), MOST_BY_DEFAULT):
            needless = "Replies take as long as for that number of records: caucus-party rotate --max-records declares"
            advice.append(f"{needless} fewer")
        running = running_records(self._settings)
        if running and running != self._settings.approvals().digest():
            advice.append(f"The running service has read another file, and refuses each request. {RESTART}")
        return _advised(detail, [*advice, *known_records.advice_on_former(self._settings.folder)])

    def labels(self) -> PreflightFinding:
        if self._records is None:
            return PreflightFinding(SKIPPED, "no records")
        if not self._settings.labelled:
            return PreflightFinding(PASSED, "none: the records take part in plans without labels alone")
        counts = Counter(record.label for record in self._records)
        shown = [f"{label}: {count}" for label, count in shown_labels(counts).items()]
        return _advised(f"{', '.join(shown) or 'none'} (known only here)", advice_on_labels(self._records))

    def lifetime_delta(self) -> PreflightFinding:
        limits, declared = self._settings.party.limits, self._settings.party_file().max_records
        if limits.lifetime_epsilon is None:
            return PreflightFinding(SKIPPED, "no limit on all runs together")
        bound = f"1/{declared}, one over the number of records that this hospital declares"
        if limits.lifetime_delta * declared >= 1:
            fix = f"Lower limits.lifetime_delta in client.yaml below {bound}: all runs together may publish a record"
            return PreflightFinding(WARNING, f"{limits.lifetime_delta:g} is not below {bound}", fix)
        return PreflightFinding(PASSED, f"{limits.lifetime_delta:g} is below {bound}")

    def roster(self) -> PreflightFinding:
        settings = self._settings
        if not (settings.folder / "roster.json").exists():
            fix = "Send party.json to the coordinator; then caucus-party roster takes the roster.json that it sends"
            return PreflightFinding(WAITING, "waiting for roster.json from the coordinator", fix)
        roster = settings.roster_file()
        number = settings.number(Roster.of_hospitals(roster))
        if roster.parties[number].fingerprint != settings.party_file().fingerprint:
            raise ConfigError("roster", expected="this hospital's keys as in party.json", got="another node's key")
        detail = f"party {number} of {len(roster.parties)}: {', '.join(map(quote_name, roster.names))}"
        if running_roster(settings) not in {None, roster.fingerprint}:
            return PreflightFinding(WARNING, f"{detail}; the running service has the roster from before", RESTART)
        return PreflightFinding(PASSED, detail)

    def disk(self) -> PreflightFinding:
        free = shutil.disk_usage(self._settings.folder).free
        log = self._settings.audit_log
        needed = MOST_KEPT + LARGEST_AUDIT - (log.stat().st_size if log.exists() else 0)
        detail = f"{_mib(free)} free"
        if free < LEAST_ROOM:
            return PreflightFinding(
                PROBLEM, detail, f"Make room: below {_mib(LEAST_ROOM)} a run ends with its next answer"
            )
        if free < needed:
            return PreflightFinding(
                WARNING, detail, f"Make room: ledger, audit log and answers may grow by {_mib(needed)}"
            )
        return PreflightFinding(PASSED, detail)

    def approval(self) -> PreflightFinding:
        for stored in (approvals, releases):
            stored(self._settings.private)  # raises if a file is damaged
        who = {"manual": "a person approves each plan", "auto": "the limits alone decide"}
        return PreflightFinding(PASSED, f"{self._settings.approval}: {who[self._settings.approval]}")

    def relay_user(self) -> PreflightFinding:
        user = self._settings.relay_user
        if os.geteuid() != 0:
            return PreflightFinding(SKIPPED, "only root can try another account")
        if user is None:
            detail = "none: started as root, only the relay's own code keeps it from the records"
            return PreflightFinding(
                WARNING, detail, "Make an account and a new folder with caucus-party init --relay-user"
            )
        try_relay_account(self._settings, user)
        return PreflightFinding(PASSED, f"{user} executes {sys.executable} and reads its key")

    def limits(self) -> PreflightFinding:
        self._settings.check_limits()
        limits, shipped = self._settings.party.limits, shipped_limits()
        detail = ", ".join(f"{name} {_listed(value)}" for name, value in asdict(limits).items())
        loose = [
            f"set {name}: {_listed(getattr(shipped, name))}, {LOOSER.get(name, 'as at a new hospital')}"
            for name in limits.looser(shipped)
        ]
        return _advised(detail, [*loose, *advice_on_charges(self._settings)])

    def ledger_head(self) -> PreflightFinding:
        self._settings.noted_head.opened_at_start(self._settings.ledger, read_only=True)
        return place_of_note(self._settings)

    def writers(self) -> PreflightFinding:
        kinds = sorted(self._settings.party.writers())
        if "fine_tuning" in self._settings.party.sections:
            causal_model.check_installed()  # a simulated hospital has the section, and may be without its packages
        unused = sorted(set(kinds) - set(self._settings.party.limits.queries))
        if unused:
            fix = f"Add {', '.join(unused)} to limits.queries, or set the section to null"
            return PreflightFinding(WARNING, f"set up, but refused by limits.queries: {', '.join(unused)}", fix)
        return PreflightFinding(PASSED, ", ".join(kinds) or "none: no texts of this hospital's models are released")

    def encoder(self) -> PreflightFinding:
        encoder = self._settings.loaded_encoder()
        encoder.encode(["one text"])  # raises if its vectors are not finite
        return PreflightFinding(PASSED, f"{encoder.digest[:16]}, {encoder.dimensions} dimensions")


CHECKS: dict[str, tuple[Callable[[_Preflight], PreflightFinding], str]] = {
    "settings": (_Preflight.settings, ""),
    "secrets": (_Preflight.secrets, "Restore the file, or make a new folder with caucus-party init and enrol again"),
    "connection": (_Preflight.connection, ""),
    "clock": (_Preflight.clock, ""),
    "node's key": (_Preflight.node_key, "Ask the coordinator whether its caucus-coordinator serve works"),
    "node": (_Preflight.node, ""),
    "coordinator's certificate": (_Preflight.certificate, ""),
    "coordinator's authority": (_Preflight.authority, ""),
    "records": (_Preflight.records, "Correct the file, or `records` in client.yaml"),
    "labels": (_Preflight.labels, ""),
    "lifetime_delta": (_Preflight.lifetime_delta, ""),
    "roster": (_Preflight.roster, "Ask the coordinator for its present roster.json, then caucus-party roster"),
    "disk": (_Preflight.disk, ""),
    "approval": (_Preflight.approval, ""),
    "relay's account": (
        _Preflight.relay_user,
        "Install Python and Caucus where this account can read and execute them, such as /opt; it must own node/",
    ),
    "limits": (_Preflight.limits, ""),
    "ledger's head": (_Preflight.ledger_head, "Mount its disk, or correct `ledger_head` in client.yaml"),
    "writers": (_Preflight.writers, "Correct the section in client.yaml, or set it to null"),
    "encoder": (_Preflight.encoder, "Correct `encoder` in client.yaml: hashed_ngrams, or the folder of a model"),
}
"""The method of each check, and the advice for errors that include none; keyed by name, in order of execution.
"""


def place_of_note(settings: HospitalSettings) -> PreflightFinding:
    """Return where the ledger's head is noted: a warning if a restore of the ledger may bring an older note back."""
    path, place = settings.noted_head.path, settings.noted_head.path.parent.resolve()
    if place.stat().st_dev != settings.private.stat().st_dev:
        return PreflightFinding(PASSED, f"noted in {path}, on another file system than the ledger")
    inside = place.is_relative_to(settings.folder)
    restored = "this whole folder restored from a backup" if inside else "this whole disk restored, as by a snapshot,"
    detail = f"noted in {path}, on the ledger's file system: {restored} is not noticed, and gives budget back"
    fix = "Move the note to another disk or share while nothing runs, and name it in client.yaml: ledger_head"
    return PreflightFinding(WARNING, detail, fix)


def try_relay_account(settings: HospitalSettings, user: str) -> None:
    """Let the relay's account read its key and look for the relay's code; only root can try it.

    Raises:
        ConfigError: There is no such account, or it cannot execute the relay or read its key.
    """
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        raise ConfigError("relay_user", expected="an account of this machine", got=user) from None
    try:
        ended = subprocess.run(
            [sys.executable, "-c", _AS_RELAY],
            env=processes.child_environment(settings.node),
            cwd=settings.folder,
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # else it could type at our terminal
            capture_output=True,
            text=True,
            check=False,
            timeout=_RELAY_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError("relay", expected=f"to run as {user}", got=str(error)) from None
    if ended.returncode:
        got = (ended.stderr.strip().splitlines() or [f"code {ended.returncode}"])[-1]
        raise ConfigError("relay", expected=f"to run as {user}", got=got if got.isprintable() else ascii(got))


def _mib(size: int) -> str:
    return f"{size / 2**20:,.0f} MiB"


def _days(expires: datetime, fix: str) -> PreflightFinding:
    days = (expires - datetime.now(UTC)).days
    detail = f"ends in {days} days, on {expires:%Y-%m-%d}"
    if days < 0:
        return PreflightFinding(PROBLEM, f"ended on {expires:%Y-%m-%d}", fix)
    return PreflightFinding(WARNING, detail, fix) if days < SOON else PreflightFinding(PASSED, detail)


def _advised(detail: str, advice: list[str]) -> PreflightFinding:
    return PreflightFinding(WARNING, detail, "; ".join(advice)) if advice else PreflightFinding(PASSED, detail)


def _listed(value: object) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(str, value))})"
    return str(value).lower() if isinstance(value, bool) else str(value)
