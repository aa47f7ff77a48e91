"""A party's own file, `client.yaml`: where its records are, what it lets happen to them, whom it connects to.

FOLDER/client.yaml        0600  this file
FOLDER/private/           0700  identity.key, ledger.db, audit.jsonl, runs/: the party service's alone
FOLDER/node/              0700  node.key, ca.crt, superexec.secret: the relay's, which holds nothing private
FOLDER/run/                     the socket between the two
FOLDER/logs/              0700
FOLDER/party.json               public: for the coordinator
FOLDER/roster.json              public: everybody's identities, numbered; from the coordinator
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import yaml

from client.guard import Limits
from client.writers.base import PartyWriter
from common.domain import PartyId
from common.errors import CaucusError, ConfigError
from common.queries.texts import FineTunedSpec
from common.secagg.identity import Identity, Roster
from common.system.files import check_secret

SOCKET = "unix:run/party.sock"
"""Relative to the folder: a Unix socket's path may have 107 characters."""

_HEX = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HospitalSettings:
    """What `client.yaml` says.

    Attributes:
        folder: Where it lies.
        name: The hospital's name.
        records: File of private records.
        encoder: "hashed_ngrams", or a model's folder.
        coordinator: host:port of the coordinator's front door.
        bundle: SHA-256 of the one bundle whose messages are answered.
        approval: "manual" or "auto".
        relay_user: Whom the relay runs as, where we are root.
        fine_tuning: HospitalSettings of `client.writers.fine_tuning.FineTuning`, for "fine-tuned samples"; None answers
            no such
            query. Queries without proof have nothing here that would write their texts.
        limits: What may happen to the records.
    """

    folder: Path
    name: str
    records: Path
    encoder: str
    coordinator: str
    bundle: str
    approval: str = "manual"
    relay_user: str | None = None
    fine_tuning: Mapping[str, Any] | None = None
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read `client.yaml`.

        Raises:
            ConfigError: It is missing, readable by others, no YAML, or has an unknown, missing or wrong setting.
        """
        path = folder / "client.yaml"
        if not path.is_file():
            raise ConfigError(
                "party's folder", expected="client.yaml", got="none", where=folder, do="caucus-party init"
            )
        check_secret(path)
        try:
            values = yaml.safe_load(path.read_text(encoding="utf-8"))
        except yaml.YAMLError as error:
            raise ConfigError("client.yaml", expected="YAML", got="something else", where=path) from error
        known = {each.name for each in fields(cls)} - {"folder"}
        if not isinstance(values, dict) or set(values) - known or {"name", "records"} - set(values):
            odd = sorted(map(str, set(values) - known)) if isinstance(values, dict) else []
            raise ConfigError(
                "client.yaml", expected=f"settings {sorted(known)}", got=odd or "something else", where=path
            )
        try:
            return cls(**values | {
                "folder": folder.resolve(),
                "records": (folder / str(values["records"])).resolve(),
                "limits": Limits(**values.get("limits") or {}),
            })  # fmt: skip
        except CaucusError as error:
            raise ConfigError(error.what, where=path, do=error) from error
        except TypeError as error:
            raise ConfigError("client.yaml", expected="known limits, and every setting", where=path) from error

    def __post_init__(self) -> None:
        if not _HEX.fullmatch(str(self.bundle)):
            raise ConfigError("bundle", expected="64 hexadecimal digits", got=self.bundle)
        host, _, port = str(self.coordinator).rpartition(":")
        if not host or not port.isdigit():
            raise ConfigError("coordinator", expected="host:port", got=self.coordinator)

    @property
    def private(self) -> Path:
        """The party service's folder."""
        return self.folder / "private"

    @property
    def node(self) -> Path:
        """The relay's folder."""
        return self.folder / "node"

    def identity(self) -> Identity:
        """This hospital's signing key, which never leaves it.

        Raises:
            ConfigError: The file is missing, open to others or too short.
        """
        check_secret(self.private / "identity.key")
        return Identity((self.private / "identity.key").read_bytes())

    def roster(self) -> Roster:
        """Everybody's identities, from this hospital's own file.

        Raises:
            ConfigError: It is missing, or no roster.
        """
        path = self.folder / "roster.json"
        if not path.is_file():
            raise ConfigError("roster", expected="roster.json, from the coordinator", got="none", where=self.folder)
        return Roster.from_json(path.read_bytes())

    def number(self, roster: Roster) -> PartyId:
        """This hospital's number: where the roster has its key.

        Raises:
            ConfigError: Nowhere.
        """
        own = self.identity().public
        for party, key in roster.keys.items():
            if key == own:
                return party
        raise ConfigError(
            "roster", expected="one with this hospital's key", got="another", do="Send party.json to the coordinator"
        )

    def writers(self) -> dict[str, PartyWriter]:
        """What writes texts here, by kind of query.

        Raises:
            ConfigError: A setting is unknown or out of range.
        """
        if self.fine_tuning is None:
            return {}
        from client.writers.fine_tuning import FineTuning  # noqa: PLC0415 what supervises needs none of it

        try:
            return {FineTunedSpec.kind: FineTuning(**self.fine_tuning)}
        except TypeError as error:
            known = [each.name for each in fields(FineTuning)]
            raise ConfigError("fine_tuning", expected=f"settings {known}", got="others", where=self.folder) from error

    def loaded_encoder(self) -> Any:  # noqa: ANN401 torch comes with its module
        """The encoder that this hospital runs."""
        from common.models.encoder import Encoder  # noqa: PLC0415 torch

        return (
            Encoder.hashed_ngrams()
            if self.encoder == "hashed_ngrams"
            else Encoder.pretrained(self.folder / self.encoder)
        )
