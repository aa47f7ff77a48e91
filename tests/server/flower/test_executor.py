import os
import select
import subprocess
import sys
from types import SimpleNamespace

import httpx
import pytest
from flwr.supercore.constant import TaskType

from server.flower import executor

TOKEN = "ab" * 32


@pytest.fixture
def serverapp(tmp_path, monkeypatch):
    """A program in the place of flwr-serverapp, which writes its arguments and the content of its token file."""
    program = tmp_path / "flwr-serverapp"
    program.write_text(
        f"#!{sys.executable}\nimport sys; from pathlib import Path\n"
        f"file = sys.argv[sys.argv.index('--token-file') + 1]\n"
        f"told = [*sys.argv[1:], str(Path(file).is_file()), Path(file).read_text()]\n"
        f"Path({str(tmp_path / 'told')!r}).write_text('\\n'.join(told))\n"
    )
    program.chmod(0o700)
    monkeypatch.setattr(executor, "program", lambda name: str(tmp_path / name))
    return tmp_path / "told"


def test_a_runs_process_gets_its_token_in_a_file_that_no_other_has(serverapp, tmp_path):
    process = executor.start(TOKEN, "127.0.0.1:1", tmp_path / "ca.crt")
    assert process.wait(120) == 0
    *arguments, is_file, token = serverapp.read_text().split("\n")
    assert (is_file, token) == ("True", TOKEN)
    assert TOKEN not in "".join(arguments)
    assert arguments[:4] == ["--runtime-api-address", "127.0.0.1:1", "--root-certificates", str(tmp_path / "ca.crt")]


def test_a_runs_process_is_killed_with_its_executor_whatever_it_waits_for(tmp_path):
    code = (
        "import sys; from pathlib import Path; from server.flower import executor\n"
        f"executor.program = lambda name: {str(tmp_path / 'app')!r}\n"
        f"print(executor.start('token', 'here', Path({str(tmp_path)!r})).pid, flush=True); sys.stdin.read()"
    )
    (tmp_path / "app").write_text("#!/bin/sh\ntrap '' INT TERM HUP\nexec sleep 600\n")
    (tmp_path / "app").chmod(0o700)
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        child = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()
    assert select.select([child], [], [], 60)[0]  # readable once the process has ended


def test_every_serverapp_is_started_and_a_superlink_that_is_away_is_waited_for(tmp_path, monkeypatch, caplog):
    class EndError(Exception):
        pass

    tokens = iter([httpx.ConnectError("refused"), httpx.ConnectError("refused"), "one", "", "two", EndError()])
    started = []

    def acquire(request):
        assert list(request.supported_task_types) == [TaskType.SERVER_APP]
        token = next(tokens)
        if isinstance(token, Exception):
            raise token
        return SimpleNamespace(token=token)

    def start(token, *_):
        started.append(token)
        return SimpleNamespace(poll=lambda: 0, pid=1)

    monkeypatch.setattr(executor, "start", start)
    monkeypatch.setattr(executor, "POLL_SECONDS", 0.0)
    client = SimpleNamespace(from_server_address=lambda **_: SimpleNamespace(AcquireTask=acquire))
    monkeypatch.setattr(executor, "RuntimeHttpClient", client)
    (tmp_path / "ca.crt").touch()
    with pytest.raises(EndError):
        executor.serve_apps("127.0.0.1:1", tmp_path / "ca.crt", b"secret")
    assert started == ["one", "two"]
    assert caplog.text.count("127.0.0.1:1: ConnectError") == 1
