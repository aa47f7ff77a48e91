"""A coordinator's folder.

FOLDER/coordinator.yaml     address, ports
FOLDER/ca.crt, ca.key       the authority that hospitals trust; ca.key signs and is read by `init` and `renew` alone
FOLDER/server.crt, .key     of front door and SuperLink
FOLDER/superexec.secret     what SuperLink knows the executor by
FOLDER/parties.json         who is enrolled, by number; roster.json, their identities: public
FOLDER/invitation.json      public: for the hospitals
FOLDER/bundle/              what Flower is told to run: two lines that name the installed code
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
superlink_port: {superlink_port}  # on loopback alone: nobody but this machine's own users may reach it
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorSettings:
    """What `coordinator.yaml` says.

    Attributes:
        folder: Where it lies.
        address: host:port that the hospitals connect to.
        listen: Address that the front door listens on.
        superlink_port: SuperLink's, on loopback.
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
        known = {each.name for each in fields(cls)} - {"folder"}
        if not isinstance(values, dict) or set(values) - known or "address" not in values:
            raise ConfigError("coordinator.yaml", expected=f"settings {sorted(known)}", got="others", where=path)
        return cls(folder=folder.resolve(), **values)

    @property
    def host(self) -> str:
        """Of the front door."""
        return self.address.rpartition(":")[0]

    @property
    def port(self) -> int:
        """Of the front door."""
        return int(self.address.rpartition(":")[2])

    @property
    def superlink(self) -> str:
        """host:port of SuperLink."""
        return f"127.0.0.1:{self.superlink_port}"
