"""`caucus-simulate`: its version at once, and all else by `simulations/run.py`, which imports what a run needs."""

import sys

from common.system.commands import VERSION
from common.versions import versions


def main() -> None:
    """Entry point; exit codes are those of `common/system/commands.py`."""
    if sys.argv[1:] == [VERSION]:
        sys.stdout.write(f"caucus-simulate: {versions()}\n")
        return
    from simulations.run import main as run  # noqa: PLC0415 torch

    run()


if __name__ == "__main__":
    main()
