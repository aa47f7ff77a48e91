"""The coordinator's machine has other users, who reach its loopback ports: none of them can act in its place."""

import base64
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from server.deploy.settings import CoordinatorSettings
from server.flower.commands import TOKEN
from simulations.laboratory.nodes.deployment import wait
from tests.support.deployed import coordinator
from tests.support.faults import EXACT

pytestmark = pytest.mark.deployment

STRANGER = "nobody"


@pytest.fixture(scope="module")
def stranger(deployed):
    """A function that runs a Python program as another user of this machine, whose Flower knows SuperLink's address."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("only root can run a program as another user")
    account = pwd.getpwnam(STRANGER)
    ids = ("--reuid", str(account.pw_uid), "--regid", str(account.pw_gid), "--clear-groups")
    home = Path(tempfile.mkdtemp(prefix="stranger-"))
    shutil.copy(deployed.here / "ca.crt", home)
    shutil.copytree(deployed.here / "bundle", home / "bundle")
    address = CoordinatorSettings.load(deployed.here).superlink
    (home / "config.toml").write_text(
        f'[superlink.caucus]\naddress = "{address}"\nroot-certificates = "{home / "ca.crt"}"\n'
    )
    for path in (home, *home.rglob("*")):
        os.chown(path, account.pw_uid, account.pw_gid)
    quiet = {"FLWR_HOME": str(home), "HOME": str(home), "FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}

    def run(program, *arguments):
        return subprocess.run(
            ["setpriv", *ids, sys.executable, "-c", program, *map(str, arguments)],
            env={"PATH": "/usr/bin:/bin", **quiet},
            cwd=home,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    if run("import flwr").returncode != 0:
        pytest.skip("another user cannot run this Python")
    yield run, home
    shutil.rmtree(home)


def test_another_user_can_neither_start_nor_see_nor_stop_a_run(deployed, stranger):
    run, home = stranger
    flwr = (
        "import sys; from importlib.metadata import entry_points; sys.argv[0] = 'flwr'; "
        "(script,) = entry_points(group='console_scripts', name='flwr'); script.load()()"
    )
    calls = [("run", home / "bundle"), ("list",), ("stop", "1"), ("supernode", "list"), ("federation", "list")]
    forged = json.loads((deployed.here / "flwr" / "credentials.yaml").read_text())
    forged |= {name: base64.b64encode(b"ab" * 32).decode() for name in forged if name.endswith("-token")}
    for login in ({}, forged):
        (home / "credentials.yaml").write_text(json.dumps(login))
        (home / "credentials.yaml").chmod(0o644)
        for call in calls:
            output = run(flwr, *call, "caucus", "--format", "json").stdout
            answer = json.loads(output[output.index("{") :])
            assert answer["success"] is False, call
            assert "Authentication failed" in answer["error-message"], call
    assert json.loads(coordinator("status", deployed.here, "--json"))["runs"] == []
    assert deployed.online() == 3


def test_no_argument_of_a_process_and_no_file_gives_another_user_a_token(deployed, stranger):
    run, _ = stranger
    deployed.begin("seen", EXACT)

    address = CoordinatorSettings.load(deployed.here).superlink.encode()

    def serverapp():
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if b"flwr-serverapp" in (arguments := path.read_bytes()) and address in arguments:
                    return path.parent
            except OSError:
                continue
        return None

    process = wait(serverapp, "the run's process is there")
    arguments = (process / "cmdline").read_text().split("\0")
    assert "--token" not in arguments
    (file,) = (argument for argument in arguments if argument.startswith("/proc/self/fd/"))
    descriptor = process / "fd" / file.rsplit("/", 1)[1]
    assert len(bytes.fromhex(descriptor.read_text())) >= 16  # root reads it
    secrets = [descriptor, process / "environ", deployed.here / TOKEN, deployed.here / "flwr" / "credentials.yaml"]
    secrets += [deployed.here / "superexec.secret", deployed.here / "ca.key", deployed.here / "superlink.db"]
    attack = "import sys\nfor p in sys.argv[1:]:\n try:\n  open(p,'rb').read(1); print(p)\n except OSError: pass"
    tried = run(attack, *secrets)
    assert (tried.returncode, tried.stdout) == (0, ""), tried.stderr
    assert deployed.finish("seen")[0] == 0
