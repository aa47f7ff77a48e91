"""A coordinator's folder.

FOLDER/coordinator.yaml     address, ports
FOLDER/ca.crt, ca.key       the authority that hospitals trust; ca.key signs and is read by `init` and `renew` alone
FOLDER/server.crt, .key     certificate and key of front door and SuperLink
FOLDER/superexec.secret     secret by which SuperLink recognises the executor
FOLDER/control.secret       token that SuperLink demands of all others; `serve` draws it anew
FOLDER/parties.json         enrolled parties by number, with their nodes
FOLDER/roster.json          their party files, for the hospitals; public
FOLDER/identities.json      their identities alone, for the runs (secagg.roster)
FOLDER/invitation.json      for the hospitals; public
FOLDER/bundle/              Flower app: two lines that import the installed code
FOLDER/flwr/                Flower's own configuration
FOLDER/runs/NAME/           run folders
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

import yaml

from common.errors import ConfigError

YAML = """\
# caucus-coordinator serve {folder}
address: {address}  # host:port that the hospitals connect to; the certificate is for this host
listen: {listen}  # address of this machine that the front door listens on
superlink_port: {superlink_port}  # on loopback: only users of this machine can reach it
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorSettings:
    """Content of `coordinator.yaml`.

    Attributes:
        folder: Folder of the file.
        address: host:port that the hospitals connect to.
        listen: Address that the front door listens on.
        superlink_port: Port of SuperLink, on loopback.
    """

    folder: Path
    address: str
    listen: str = "0.0.0.0"  # noqa: S104 the front door is for all
    superlink_port: int = 39090

    def __post_init__(self) -> None:
        host, _, port = str(self.address).rpartition(":")
        if not host or not port.isdigit():
            raise ConfigError("address", expected="host:port", got=self.address)
        if type(self.superlink_port) is not int or not 0 < self.superlink_port < 2**16:
            raise ConfigError("superlink_port", expected="a port", got=self.superlink_port)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read `coordinator.yaml`.

        Raises:
            ConfigError: It is missing, or has an unknown or wrong setting.
        """
        path = folder / "coordinator.yaml"
        try:
            values = yaml.safe_load(path.read_text(encoding="utf-8"))
        except OSError:
            do = "caucus-coordinator init"
            raise ConfigError("coordinator's folder", expected=path.name, got="none", where=folder, do=do) from None
        except yaml.YAMLError as error:
            raise ConfigError("coordinator.yaml", expected="YAML", got="something else", where=path) from error
        names = {field.name for field in fields(cls)} - {"folder"}
        if not isinstance(values, dict) or set(values) - names or "address" not in values:
            raise ConfigError("coordinator.yaml", expected=f"settings {sorted(names)}", got="others", where=path)
        return cls(folder=folder.resolve(), **values)

    @property
    def host(self) -> str:
        """Host of the front door."""
        return self.address.rpartition(":")[0]

    @property
    def port(self) -> int:
        """Port of the front door."""
        return int(self.address.rpartition(":")[2])

    @property
    def superlink(self) -> str:
        """host:port of SuperLink."""
        return f"127.0.0.1:{self.superlink_port}"
