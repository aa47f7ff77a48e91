"""`left.json`, which `caucus-party leave` writes into the folder of a hospital that left.

It is the only file that shows that a folder is sealed; `client.yaml`, which `leave` deletes last, is then gone.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from common.errors import ConfigError
from common.system.commands import as_json
from common.system.files import content_of, write_atomic

LEFT = "left.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """The content of `left.json`.

    Attributes:
        left: When the hospital left, ISO 8601 in UTC.
        by: The account that gave the command.
        head: Head of the sealed ledger; empty if there is no ledger, since nothing was answered.
        sha256: SHA-256 of each kept file, keyed by its path in the folder.
        lifetime_delta: Delta of the hospital's limits, at which its epsilon was counted.
    """

    hospital: str
    left: str
    by: str
    head: str
    sha256: dict[str, str]
    lifetime_delta: float

    @property
    def date(self) -> str:
        """The day on which the hospital left."""
        return self.left[:10]

    @classmethod
    def of(cls, folder: Path) -> "Left | None":
        """Return the content of a folder's file; None if no hospital left, or if `leave` was interrupted there.

        Raises:
            ConfigError: The file is not what `leave` writes.
            OSError: The file cannot be read.
        """
        path = folder / LEFT
        if not path.is_file() or (folder / "client.yaml").exists():
            return None
        try:
            return cls(**json.loads(content_of(path)))
        except (ValueError, TypeError):
            raise ConfigError(f"{LEFT} was changed", where=path, do="Restore it from a backup") from None

    def write(self, folder: Path, *, mode: int) -> None:
        """Write the file, whole or not at all."""
        write_atomic(folder / LEFT, as_json(asdict(self)).encode(), mode=mode)
