"""A process that holds locks on a folder, as a supervisor does."""

import subprocess
import sys
from contextlib import contextmanager

_HOLD = (
    "import os, signal, sys; from pathlib import Path; from common.system.locks import hold_locks\n"
    "with hold_locks(Path(sys.argv[1]), sys.argv[2:], stop='stop'): print(os.getpid(), flush=True); signal.pause()"
)


@contextmanager
def locking(folder, *names, within=()):
    """Yield a process that holds these locks; `within` is the command prefix with which it is started."""
    command = [*within, sys.executable, "-c", _HOLD, str(folder), *names]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline()
            yield process
        finally:
            process.kill()
