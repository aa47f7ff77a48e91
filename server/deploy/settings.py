"""The files of a coordinator's folder, and its settings.

FOLDER/coordinator.yaml     address, ports
FOLDER/ca.crt, ca.key       the authority that hospitals trust; ca.key signs and is read only by `init` and `renew`
FOLDER/server.crt, .key     certificate and key of the front door and SuperLink
FOLDER/superexec.secret     secret by which SuperLink recognises the executor
FOLDER/control.secret       token that SuperLink requires of all other processes; `serve` draws a new one
FOLDER/parties.json         the enrolled parties by number, with their nodes
FOLDER/roster.json          the enrolled parties' files, for the hospitals; public
FOLDER/identities.json      only the parties' identities, for the runs (secagg.roster)
FOLDER/invitation.json      invitation for the hospitals; public
FOLDER/bundle/              Flower app: two lines that import the installed code
FOLDER/flwr/                Flower's own configuration
FOLDER/runs/NAME/           run folders
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

from common.address import check_host, host_and_port
from common.errors import CaucusError, ConfigError
from common.system import processes
from common.system.yaml_file import YamlFile, add_location
from common.validate import check_fields, integers_in, known_keys

LOCKS = ("coordinator",)
"""Lock that `caucus-coordinator serve` holds while it runs."""
YAML = """\
# caucus-coordinator serve {folder}
address: {address}  # host:port that the hospitals connect to; the certificate is for this host
listen: {listen}  # address of this machine that the front door listens on
superlink_port: {superlink_port}  # on loopback: only users of this machine can reach it
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorSettings:
    """Content of `coordinator.yaml`, whose settings `YAML` explains, and the folder that contains the file."""

    folder: Path
    address: str
    listen: str = "0.0.0.0"  # noqa: S104 the front door is for all
    superlink_port: int = 39090

    def __post_init__(self) -> None:
        host_and_port("address", self.address)
        check_host("listen", self.listen)
        integers_in(1, 2**16 - 1, superlink_port=self.superlink_port)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read `coordinator.yaml`.

        Raises:
            ConfigError: The file is missing, or contains an unknown or invalid setting.
        """
        path = folder / "coordinator.yaml"
        if not path.is_file():
            do = "Run caucus-coordinator init"
            raise ConfigError("coordinator's folder", expected=path.name, got="none", where=folder, do=do)
        file = YamlFile.load(path)
        known = [field.name for field in fields(cls) if field.name != "folder"]
        with add_location(file.where):
            values = known_keys("", file.values, among=known, required=("address",))
            check_fields(cls, values)
            return cls(folder=folder.resolve(), **values)

    @property
    def is_served(self) -> bool:
        """Whether `caucus-coordinator serve` runs for this folder."""
        return processes.status(self.folder, LOCKS[0]) is not None

    def check_served(self) -> None:
        """Raise a CaucusError if `caucus-coordinator serve` does not run, without which Flower answers nothing."""
        if not self.is_served:
            raise CaucusError("the coordinator does not run", do=f"Run caucus-coordinator serve {self.folder}")

    @property
    def host(self) -> str:
        """Host of the front door, an IPv6 address without brackets."""
        return host_and_port("address", self.address)[0]

    @property
    def port(self) -> int:
        """Port of the front door."""
        return host_and_port("address", self.address)[1]

    @property
    def superlink(self) -> str:
        """host:port of SuperLink."""
        return f"127.0.0.1:{self.superlink_port}"
