"""Flower's own commands as the coordinator runs them: their configuration, output and errors."""

import base64
import hashlib
import json
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.errors import CaucusError
from common.rng import secure_bytes
from common.system.files import SECRET, write_atomic
from common.system.processes import child_environment, program

CONNECTION = "caucus"
TOKEN = "control.secret"  # noqa: S105 a path
"""File with the token that SuperLink requires in every request; see server/flower/superlink.py."""
TIMEOUT = 180.0

BUNDLE = {
    "pyproject.toml": """\
[project]
name = "caucus-bundle"
version = "{version}"
description = "Names the code that coordinator and hospitals have installed."
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "caucus"

[tool.flwr.app.components]
serverapp = "caucus_bundle:server"
clientapp = "caucus_bundle:client"

[tool.flwr.app.config]
run-folder = ""
""",
    "caucus_bundle.py": '''\
"""Both sides run the code that they have installed; a hospital's relay does not even look in here."""

from client.app import app as client
from server.app import app as server

__all__ = ["client", "server"]
''',
}


def write_bundle(folder: Path, version: str) -> str:
    """Write the bundle's sources and return the hexadecimal SHA-256 of the bundle built from them."""
    folder.mkdir(exist_ok=True)
    for name, content in BUNDLE.items():
        write_atomic(folder / name, content.replace("{version}", version).encode())
    with tempfile.TemporaryDirectory() as built:
        home = Path(built)
        _run([program("flwr"), "build", "--app", str(folder)], child_environment(home), home)
        (file,) = home.glob("*.fab")
        return hashlib.sha256(file.read_bytes()).hexdigest()


def write_connection(folder: Path, superlink: str) -> None:
    """Generate SuperLink's token, and store it in the coordinator's folder, where Flower's commands look for it.

    They treat it like the token of a login, and send it with each request to SuperLink at host:port.
    """
    (folder / "flwr").mkdir(exist_ok=True, mode=0o700)
    connection = (
        f'[superlink]\ndefault = "{CONNECTION}"\n\n[superlink.{CONNECTION}]\naddress = "{superlink}"\n'
        f'root-certificates = "{folder / "ca.crt"}"\n'
    )
    write_atomic(folder / "flwr" / "config.toml", connection.encode(), mode=SECRET)
    token = secure_bytes(32).hex()
    write_atomic(folder / TOKEN, token.encode(), mode=SECRET)
    login = {"authn-type": "oidc", "oidc-access-token": token, "oidc-refresh-token": ""}
    credentials = {
        f"flower.account-auth.{superlink}.{name}": base64.b64encode(value.encode()).decode()
        for name, value in login.items()
    }
    write_atomic(folder / "flwr" / "credentials.yaml", json.dumps(credentials).encode(), mode=SECRET)


def flwr(folder: Path, *arguments: str) -> Mapping[str, Any]:
    """Run one of Flower's commands and return its JSON output; raise a CaucusError with its message if it fails."""
    output = _run([program("flwr"), *arguments, CONNECTION, "--format", "json"], child_environment(folder), folder)
    try:
        answer: dict[str, Any] = json.loads(output[output.index("{") :])
    except ValueError:
        got = " ".join(output.split())
        raise CaucusError(
            "Flower", got=got, where=arguments[0], do="Check that caucus-coordinator serve runs"
        ) from None
    if not answer.get("success"):
        got = " ".join(str(answer.get("error-message", "")).split())
        raise CaucusError("Flower refuses the command", got=got, where=arguments[0], do="Read the coordinator's logs")
    return answer


def _run(command: list[str], variables: Mapping[str, str], folder: Path) -> str:
    try:
        ended = subprocess.run(
            command, env=dict(variables), cwd=folder, capture_output=True, text=True, check=False, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        what, do = f"Flower's command takes more than {TIMEOUT:g} s", "See its effect: caucus-coordinator status"
        raise CaucusError(what, where=command[1], do=do) from None
    if ended.returncode and "{" not in ended.stdout:
        output = " ".join((ended.stdout + ended.stderr).split())[-300:]
        raise CaucusError(
            "Flower's command", got=output, where=command[1], do="Check that caucus-coordinator serve runs"
        )
    return ended.stdout
