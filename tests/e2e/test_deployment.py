"""Real nodes: one guarded SuperLink, three SuperNodes, TLS, on loopback, by the commands that an operator types."""

import os
import pwd
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from server.deploy.settings import CoordinatorSettings
from server.flower.commands import flwr
from simulations.laboratory.nodes.deployment import text, wait
from tests.support.deployed import party, running

pytestmark = pytest.mark.deployment


def relay_user():
    """An account for the relays, where we may give them one and it can run this Python."""
    if os.geteuid() != 0:
        return None
    account = pwd.getpwnam("nobody")
    try:
        ran = subprocess.run([sys.executable, "-c", ""], user=account.pw_uid, group=account.pw_gid, check=False)
    except PermissionError:
        return None
    return account.pw_name if ran.returncode == 0 else None


RELAY_USER = relay_user()


@pytest.fixture(scope="module")
def deployed():
    """Hospitals whose relays run as another user, where we may do that."""
    with running(relay_user=RELAY_USER) as made:
        yield made


def test_strangers_reach_nothing_but_the_fleet_api(deployed):
    paths = ["/v1/control/start-run", "/v1/control/list-runs", "/v1/runtime/acquire-task", "/docs", "/openapi.json"]
    tricks = ["/v1/fleet/../control/start-run", "/v1/fleet/%2e%2e/control/start-run", "//v1/control/start-run"]
    for path in [*paths, *tricks, "/v1/fleet/register-node", "/v1/fleet/unregister-node", "/health?x=1"]:
        for method in ("POST", "GET"):
            assert deployed.ask(method, path).status_code == 404, path
    smuggled = (
        "POST /v1/fleet/get-run HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
        "0\r\n\r\nPOST /v1/control/list-runs HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
    )
    with (
        socket.create_connection(("127.0.0.1", deployed.port)) as plain,
        deployed.trust().wrap_socket(plain, server_hostname="127.0.0.1") as secure,
    ):
        secure.sendall(smuggled.encode())
        secure.settimeout(5)
        answer = b""
        try:
            while part := secure.recv(4096):
                answer += part
        except TimeoutError:
            pass
    assert b" 200 " not in answer
    # A Fleet call without a node's signature.
    assert deployed.ask("POST", "/v1/fleet/pull-messages").status_code == 401
    settings = CoordinatorSettings.load(deployed.here)
    listening = subprocess.run(["ss", "-tlnH"], capture_output=True, text=True, check=True).stdout
    assert f"127.0.0.1:{settings.superlink_port} " in listening
    assert f"0.0.0.0:{settings.superlink_port} " not in listening


def test_a_stranger_with_a_key_of_its_own_is_not_let_in(deployed, tmp_path):
    stranger = tmp_path / "stranger"
    (tmp_path / "n.csv").write_text("text,label\nx,y\n")
    (tmp_path / "n.csv").chmod(0o600)
    party(
        "init",
        stranger,
        "--name",
        "S",
        "--records",
        tmp_path / "n.csv",
        "--invitation",
        deployed.here / "invitation.json",
    )
    output = party("roster", stranger, deployed.here / "roster.json", code=2)
    assert "key" in output
    deployed.start("stranger", "caucus-party", "start", stranger, "--only", "relay")
    wait(lambda: "Failed to initialize" in text(stranger / "logs" / "supernode.log"), "the stranger is refused")
    deployed.down("stranger")
    assert deployed.online() == 3


def test_a_hostile_bundle_is_not_run_and_could_read_nothing(deployed, tmp_path):
    secrets = [deployed.at(0) / "private" / name for name in ("identity.key", "ledger.db", "audit.jsonl")]
    secrets += [deployed.folder / "notes0.csv", deployed.at(0) / "client.yaml"]
    marker = tmp_path / "ran"  # by whom
    marker.touch()
    for folder in (marker, *tmp_path.parents[:2], tmp_path):
        folder.chmod(0o777)
    bundle = tmp_path / "hostile"
    bundle.mkdir()
    honest = (deployed.here / "bundle" / "pyproject.toml").read_text()
    (bundle / "pyproject.toml").write_text(honest)
    (bundle / "caucus_bundle.py").write_text(f"""
import pathlib
import sys
with open({str(marker)!r}, "a") as file:
    print(sys.argv[0], file=file)
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
client = ClientApp()
server = ServerApp()

@server.main()
def main(grid, context):
    nodes = list(grid.get_node_ids())
    asked = [Message(RecordDict({{"c": ConfigRecord({{"x": 1}})}}), dst_node_id=n, message_type="query") for n in nodes]
    replies = grid.send_and_receive(asked, timeout=60)
    seen = [str(r.error) if r.has_error() else "ran" for r in replies]
    pathlib.Path({str(tmp_path / "saw")!r}).write_text(repr(seen))
""")
    flwr(deployed.here, "run", str(bundle))
    saw = wait(lambda: text(tmp_path / "saw"), "the hostile run ends")
    assert "ran" not in saw
    assert saw.count("code") == 3 or saw.count("Error") == 3
    assert "bundle" in text(deployed.at(0) / "logs" / "relay.log")
    assert {Path(line).name for line in marker.read_text().split()} == {"flwr-serverapp"}  # the coordinator itself
    if RELAY_USER is None:
        pytest.skip("only root can give the relay an account of its own")
    # And if it did run: as the relay's account, with the relay's environment.
    account = pwd.getpwnam(RELAY_USER)
    attack = (
        "import sys\nfor p in sys.argv[1:]:\n try:\n  open(p,'rb').read(1); print('READ', p)\n except OSError: pass"
    )
    tried = subprocess.run(
        [sys.executable, "-c", attack, *map(str, secrets)],
        user=account.pw_uid,
        group=account.pw_gid,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )
    assert tried.returncode == 0, tried.stderr
    assert not tried.stdout
    relay = deployed.child("h0", "relay")
    assert f"Uid:\t{account.pw_uid}" in Path(f"/proc/{relay}/status").read_text()
    variables = Path(f"/proc/{relay}/environ").read_bytes().decode().split("\0")
    names = {variable.split("=")[0] for variable in variables if variable}
    assert names <= {
        *("LANG", "OMP_NUM_THREADS", "PYTHONPATH", "TZ", "PATH", "HOME", "FLWR_HOME", "FLWR_TELEMETRY_ENABLED"),
        *("FLWR_DISABLE_UPDATE_CHECK", "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION", "HF_HUB_OFFLINE"),
        *("HF_HUB_DISABLE_TELEMETRY", "CAUCUS_PARTY_SOCKET"),
    }


def test_secrets_are_closed_and_in_no_argument_or_log(deployed):
    for path in [*deployed.here.rglob("*"), *(p for n in range(3) for p in deployed.at(n).rglob("*"))]:
        if path.suffix in {".key", ".secret", ".db"} and "runs" not in path.parts:
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 or path.parent.stat().st_mode & 0o077 == 0, path
    key = (deployed.at(0) / "private" / "identity.key").read_bytes()
    secret = (deployed.at(0) / "node" / "superexec.secret").read_bytes()
    for key_name in ("coordinator", "h0"):
        folder = deployed.folder / key_name
        for log in (folder / "logs").glob("*.log"):
            assert secret not in log.read_bytes()
            assert key.hex().encode() not in log.read_bytes()
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert secret not in process.read_bytes()
        except OSError:
            continue
    note = (deployed.folder / "notes0.csv").read_text().splitlines()[1].split(",")[0][:40]
    for log in deployed.folder.rglob("*.log"):
        assert note not in text(log)
    assert note not in text(deployed.at(0) / "private" / "audit.jsonl")
