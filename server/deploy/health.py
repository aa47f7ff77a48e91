"""Health check for a coordinator's container.

    python -m server.deploy.health FOLDER

The check sends a request in the same way as a hospital, with the authority's certificate, so TLS, the front door and
the SuperLink behind it must all work. If they do, the exit code is 0. Otherwise the exit code is 1, and the reason is
printed in one line.
"""

import ssl
import sys
from collections.abc import Sequence
from http.client import HTTPException, HTTPSConnection
from pathlib import Path

from server.deploy.settings import CoordinatorSettings

PATIENCE = 5.0
"""Seconds within which the front door must answer."""
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 settings to compare with


def fault(folder: Path) -> str | None:
    """Return what is wrong with the coordinator; None if everything works.

    Raises:
        ConfigError: The folder is not a coordinator's folder.
    """
    settings = CoordinatorSettings.load(folder)
    context = ssl.create_default_context(cafile=str(settings.folder / "ca.crt"))
    here = "localhost" if settings.listen in EVERYWHERE else settings.listen
    door = HTTPSConnection(here, settings.port, timeout=PATIENCE, context=context)
    try:
        door.request("GET", "/health")
        code = door.getresponse().status
    except (OSError, HTTPException) as error:
        return f"the front door does not answer: {getattr(error, 'strerror', None) or type(error).__name__}"
    finally:
        door.close()
    return None if code == 200 else f"SuperLink does not answer the front door: code {code}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the health check, print the result and return the exit code."""
    (folder,) = sys.argv[1:] if arguments is None else arguments
    problem = fault(Path(folder))
    print(problem or "works")  # the engine keeps it
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
