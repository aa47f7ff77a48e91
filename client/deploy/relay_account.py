"""A try of the relay's account: whether it may execute this installation and read its key."""

import pwd
import subprocess
import sys

from client.deploy.settings import HospitalSettings
from common.errors import ConfigError
from common.system import processes

_TIMEOUT = 60.0
_AS_RELAY = """
from importlib.util import find_spec
from os import path
open("node/node.key").close()
if path.exists("node/proxy.login"):
    open("node/proxy.login").close()
raise SystemExit(None if find_spec("client.flower.relay") and find_spec("flwr") else "Caucus is not installed for it")
"""


def try_relay_account(settings: HospitalSettings, user: str) -> None:
    """Let the relay's account read its key and look for the relay's code; only root can try it.

    Args:
        settings: The hospital's settings.
        user: Name of the account.

    Raises:
        ConfigError: There is no such account, or it cannot execute the relay or read its key.
    """
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        raise ConfigError("relay_user", expected="an account of this machine", got=user) from None
    try:
        ended = subprocess.run(
            [sys.executable, "-c", _AS_RELAY],
            env=processes.environment(settings.node),
            cwd=settings.folder,
            user=account.pw_uid,
            group=account.pw_gid,
            extra_groups=[],
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # else it could type at our terminal
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError("relay", expected=f"to run as {user}", got=str(error)) from None
    if ended.returncode:
        got = (ended.stderr.strip().splitlines() or [f"code {ended.returncode}"])[-1]
        raise ConfigError("relay", expected=f"to run as {user}", got=got if got.isprintable() else ascii(got))
