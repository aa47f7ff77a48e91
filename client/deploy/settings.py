"""A hospital's folder and its `client.yaml`: the sections of `client/settings.py`, and the keys that a deployment adds.

FOLDER/client.yaml        0600  the settings
FOLDER/private/           0700  identity.key, records.key, ledger.db, ledger.head, audit.jsonl, runs/, releases/: the
                                service's; disclosures.json: of `caucus-party audit`; records.jsonl: a database's rows
FOLDER/node/              0700  node.key, ca.crt, superexec.secret, supernode.crt and .key, proxy.login,
                                supernode.reached: the relay's, which holds nothing private
FOLDER/run/                     the socket between the two
FOLDER/logs/              0700
FOLDER/party.json               public: for the coordinator
FOLDER/roster.json              public: the party files of all hospitals by number; from the coordinator
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, get_type_hints

from cryptography.x509 import Certificate

from client import records
from client.approval.entries import MODES, Approvals
from client.deploy import known_records
from client.deploy.left import Left
from client.flower.proxy import check_way
from client.noted_head import NotedHead
from client.settings import PartySettings
from common.address import host_and_port
from common.domain import PartyId, Record
from common.errors import ConfigError
from common.ledger.ledger import Ledger
from common.models import catalogue
from common.models.encoder import Encoder
from common.models.windows import no_windows
from common.secagg.identity import Identity, Roster
from common.sections import check_headings
from common.system.certificates import certificate_of
from common.system.enrolment import PartyFile, RosterFile
from common.system.files import check_secret
from common.system.yaml_file import YamlFile, add_location
from common.validate import check_type, integers_in, one_of

REQUIRED = ("name", "records", "encoder", "coordinator", "bundle")
OPTIONAL = ("proxy", "approval", "relay_user", "ledger_head", "metrics_port", "labelled", "headings", "windows")
KEYS = (*REQUIRED, *OPTIONAL)
"""Keys that a deployment's file has in addition to the sections of `client/settings.py`."""

REMOVED = "structure"
"""Key of older files, for texts that are JSON objects; `init` wrote null, which still reads."""

SIDES = {"both": ("service", "relay"), "service": ("service",), "relay": ("relay",)}
"""Choices of `--only`, each with the halves that it starts. Each half takes a lock, so that it cannot run twice."""
KEY_BYTES = 32
"""Length of the key for the digest of the file of records."""
_HEX = re.compile("[0-9a-f]{64}")


def check_folder(folder: Path) -> None:
    """Raise a ConfigError if a folder is not that of a hospital, or if the hospital has left."""
    if (folder / "client.yaml").is_file():
        return
    if left := Left.of(folder):
        what = f"this hospital left on {left.date}, and its ledger and audit log are sealed"
        raise ConfigError(what, where=folder, do="Follow Leave in configs/deployment/OPERATIONS.md to come back")
    raise ConfigError("party's folder", expected="client.yaml", got="none", where=folder, do="Run caucus-party init")


@dataclass(frozen=True, slots=True, kw_only=True)
class HospitalSettings:
    """The content of `client.yaml`; the file that `create.py` writes explains each key.

    Attributes:
        encoder: "hashed_ngrams", a name in the catalogue, such as "minilm", or a model's folder.
        coordinator: host:port of the coordinator's front door, its public endpoint.
        proxy: http://HOST:PORT of the proxy on the way to the coordinator; None for a direct connection.
        bundle: SHA-256 of the only bundle whose messages are answered.
        relay_user: Account under which the relay runs if root starts it.
        ledger_head: File in which the ledger's head is noted (see `client/noted_head.py`), relative to the folder.
        metrics_port: Port on 127.0.0.1 that serves metrics to this hospital's own Prometheus; None for no metrics.
        party: Limits and writers, which simulated parties have too.
        headings: Headings of the records' sections; if empty, no record takes part in plans by sections.
        windows: What the encoder reads of a text longer than its window: "first" or "average", as in the plan.
        written: Full names of all keys in the file, such as "limits.max_epsilon".
    """

    folder: Path
    name: str
    records: Path
    encoder: str
    coordinator: str
    bundle: str
    party: PartySettings
    proxy: str | None = None
    approval: str = "manual"
    relay_user: str | None = None
    ledger_head: str | None = None
    metrics_port: int | None = None
    labelled: bool = True
    headings: tuple[str, ...] = ()
    windows: str | None = None
    written: frozenset[str] = field(default=frozenset(), repr=False)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read `client.yaml`.

        Raises:
            ConfigError: The file is missing, readable by others, not YAML, or has an unknown, missing or invalid
                setting; or a limit has no value, or the last line no newline, as in a file that was cut off; or the
                hospital left.
        """
        check_folder(folder)
        path = folder / "client.yaml"
        check_secret(path)
        file = YamlFile.load(path)
        if not file.ends:
            do = "If nothing is missing there, add an empty line"
            raise ConfigError("the last line has no newline, as in a file that was cut off", where=path, do=do)
        for key in sorted(file.empty):
            if key.partition(".")[0] == "limits":
                raise ConfigError(key, expected="a value; null for none", got="nothing", where=file.where(key))
        party = PartySettings.read(file.values, file.where, others=(*KEYS, REMOVED), required=REQUIRED)
        values = {key: file.values[key] for key in KEYS if key in file.values}
        types = get_type_hints(cls) | {"records": str}
        with add_location(file.where):
            _check_removed(file.values.get(REMOVED))
            for key, value in values.items():
                check_type(key, value, types[key])
            path_of_records = (folder / values["records"]).resolve()
            if "headings" in values:
                values["headings"] = check_headings("headings", values["headings"]) if values["headings"] else ()
            places = {"folder": folder.resolve(), "records": path_of_records}
            return cls(**values | places, party=party, written=frozenset(file.lines))

    def __post_init__(self) -> None:
        if not _HEX.fullmatch(self.bundle):
            do = f"Run caucus-party invitation {self.folder} invitation.json"
            raise ConfigError("bundle", expected="64 hexadecimal digits", got=self.bundle, do=do)
        host_and_port("coordinator", self.coordinator)
        if self.proxy is not None:
            check_way(self.proxy, self.coordinator)
        one_of("approval", self.approval, among=MODES)
        if self.metrics_port is not None:
            integers_in(1, 2**16 - 1, metrics_port=self.metrics_port)

    def check_limits(self) -> None:
        """Raise a ConfigError if the file lacks `limits`, as one that was cut off, or a relay's in a container."""
        if "limits" not in self.written:
            do = "Restore client.yaml, or copy the section from configs/client.yaml"
            raise ConfigError("limits", expected="the section", got="none", where=self.folder / "client.yaml", do=do)

    def read_records(self, *, may_be_empty: bool = False, remarks: list[str] | None = None) -> list[Record]:
        """Return the private records, read as this file describes them.

        `records.load_records` documents remarks and errors.
        """
        return records.load_records(self.records, may_be_empty=may_be_empty, labelled=self.labelled, remarks=remarks)

    @property
    def private(self) -> Path:
        """Path of the party service's folder."""
        return self.folder / "private"

    @property
    def node(self) -> Path:
        """Path of the relay's folder."""
        return self.folder / "node"

    @property
    def noted_head(self) -> NotedHead:
        """The file outside the ledger that notes the ledger's head."""
        return NotedHead(self.folder / (self.ledger_head or "private/ledger.head"))

    @property
    def ledger(self) -> Path:
        """Path of the record of all answers."""
        return self.private / "ledger.db"

    def inspected_ledger(self) -> tuple[Ledger | None, str]:
        """Return the ledger to read, and why the service does not start with it; `NotedHead.inspected` has the errors.

        The ledger may be whole and lack what a former folder over the same records spent.
        """
        ledger, problem = self.noted_head.inspected(self.ledger)
        return ledger, problem or "; ".join(known_records.advice_on_former(self.folder))

    @property
    def audit_log(self) -> Path:
        """Path of the log of all requests."""
        return self.private / "audit.jsonl"

    def identity(self) -> Identity:
        """Return this hospital's signing key, which never leaves; raise a ConfigError if its file is wrong or open."""
        check_secret(self.private / "identity.key")
        return Identity((self.private / "identity.key").read_bytes())

    def approvals(self) -> Approvals:
        """Return the hospital's decisions, bound to the file of records in its current state."""
        key = self.records_key()
        return Approvals(self.private, records=self.records, key=key, labelled=self.labelled, headings=self.headings)

    def records_key(self) -> bytes:
        """Return the key for the digest of the file of records; errors are those of `identity`."""
        path = self.private / "records.key"
        check_secret(path)
        key = path.read_bytes()
        if len(key) != KEY_BYTES:
            do = f"Restore the file, of {KEY_BYTES} bytes, from a backup"
            raise ConfigError("the records' key is damaged", got=f"{len(key)} bytes", where=path, do=do)
        return key

    def authority(self) -> Certificate:
        """Return the certificate of the coordinator's authority, the only one that this hospital's node trusts.

        Raises:
            ConfigError: The file is missing, is a symbolic link, cannot be read, or is not one certificate alone.
        """
        return certificate_of(self.node / "ca.crt", do=f"caucus-party invitation {self.folder} invitation.json")

    def party_file(self) -> PartyFile:
        """Return this hospital's own public data; `PartyFile.load` has the errors."""
        return PartyFile.load(self.folder / PartyFile.FILE)

    def roster_file(self) -> RosterFile:
        """Return the public data of all hospitals, from this hospital's own file.

        Raises:
            ConfigError: The file is missing, or is not a roster.
        """
        path = self.folder / "roster.json"
        if not path.is_file():
            do = "Get roster.json from the coordinator, and run caucus-party roster"
            raise ConfigError("there is no roster", where=self.folder, do=do)
        return RosterFile.load(path)

    def roster(self) -> Roster:
        """Return the identities of all parties; `roster_file` documents the errors."""
        return Roster.of_hospitals(self.roster_file())

    def number(self, roster: Roster) -> PartyId:
        """Return this hospital's number on the roster.

        Raises:
            ConfigError: This hospital's key is not on the roster.
        """
        public_identity = self.identity().public
        for party, key in roster.keys.items():
            if key == public_identity:
                return party
        raise ConfigError(
            "roster", expected="one with this hospital's key", got="another", do="Send party.json to the coordinator"
        )

    def declared(self) -> int:
        """Return the maximum number of records that this hospital declares, by the roster; `number` has the errors."""
        return self.roster_file().parties[self.number(self.roster())].max_records

    def loaded_encoder(self) -> Encoder:
        """Return the encoder that this hospital runs."""
        if self.encoder == "hashed_ngrams":
            no_windows(self.windows)
            return Encoder.hashed_ngrams()
        listed = self.encoder in catalogue.catalogue()
        return Encoder.pretrained(self.encoder if listed else self.folder / self.encoder, windows=self.windows)


def _check_removed(structure: object) -> None:
    """Raise `ConfigError` if a file of an earlier version asks for texts that are JSON objects."""
    if structure is not None:
        do = f"Remove {REMOVED}, and write the records as plain text or in sections: they can be no JSON objects"
        raise ConfigError(REMOVED, expected="no such key", got="one", do=do)
