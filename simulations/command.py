"""The `caucus-simulate` command, which at once prints help, version or a first line, then runs `simulations/launch.py`.

Only the standard library is imported before that line, since the modules of a run take seconds to load.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

HELP = """\
usage: caucus-simulate [SETTING=VALUE ...]
       caucus-simulate --multirun SETTING=VALUE,VALUE ...
       caucus-simulate --resume FOLDER [--yes] [llm.max_cost=NUMBER] [llm.max_tokens=NUMBER]

Run a whole federation on one machine, by the same code that hospitals and coordinator run. All settings and choices
are in configs/README.md.

examples:
  caucus-simulate method=wasp task=demo_notes federation.parties=3 privacy.epsilon=4
  caucus-simulate task=csv task.train=train.csv task.test=test.csv task.public_text=public.txt
  caucus-simulate --multirun privacy.epsilon=1,4,8 experiment_seed=0,1,2
  caucus-simulate +experiment=wasp_table2 method.samples=1000
  caucus-simulate --resume runs/first
  caucus-simulate --config-dir mine method=my_method     with mine/method/my_method.yaml

options:
  -h, --help         show this help
  --version          versions of Caucus, its protocol and Flower
  --resume FOLDER    go on with a run or a sweep that was stopped, after its last whole round
  --yes              do not ask whether to make more calls of language models than llm.confirm_calls
  -m, --multirun     a sweep: run each combination of values; hydra/launcher=joblib hydra.launcher.n_jobs=2 in parallel
  --config-dir DIR   a folder of settings files in addition to our own
  --cfg job          print all settings, and run nothing; with --resolve their final values
  --hydra-help       further options of Hydra

hydra.run.dir=FOLDER names the folder of a run, hydra.sweep.dir=FOLDER that of a sweep.

exit codes: 0 success, 1 failure, 2 wrong input, 130 Ctrl-C, 143 SIGTERM; the reason is on standard error, in one line.
"""

QUIET = ("--cfg", "-c", "--info", "-i", "--hydra-help", "--shell-completion", "-sc")
"""Options with which Hydra only prints information, so that the command omits its own first line."""


def main() -> None:
    """Run the command; if it fails, exit with one of the codes that `common/system/commands.py` lists."""
    arguments = sys.argv[1:]
    if {"-h", "--help"} & set(arguments):
        sys.stdout.write(HELP)
        return
    if "--version" in arguments:
        from common.versions import versions

        sys.stdout.write(f"caucus-simulate: {versions()}\n")
        return
    if not any(argument.startswith(QUIET) for argument in arguments):
        sys.stderr.write("caucus-simulate: reading the settings\n")
        sys.stderr.flush()
    # Products of matrices are small here; threads that wait for each other took three times as long on a busy machine.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from common.system.extras import program_needs

    program_needs("caucus-simulate", "hydra", "pandas", extra="simulation")

    with stoppable():
        try:
            from common.system.files import only_for_owner
            from simulations.launch import launch_command

            with only_for_owner():
                launch_command(arguments)
        except KeyboardInterrupt as stop:
            sys.stderr.write(f"caucus-simulate: {stop.args[0] if stop.args else 'stopped before the run began'}\n")
            sys.exit(exit_code(stop))


class Terminated(KeyboardInterrupt):
    """The process received SIGTERM."""


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Raise KeyboardInterrupt on Ctrl-C, and Terminated on SIGTERM, once and in the main thread.

    A process that was started with one of these signals ignored, as a shell's background job, continues to ignore it.

    At the end of the block the earlier handlers are restored. After a signal, however, the system's own handlers stay
    in place, so that a second signal ends the process.
    """
    numbers = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not signal.SIG_IGN]
    stopped = False

    def stop(number: int, _: FrameType | None) -> NoReturn:
        nonlocal stopped
        stopped = True
        for other in numbers:
            signal.signal(other, signal.SIG_DFL)
        raise Terminated if number == signal.SIGTERM else KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        if not stopped:
            for number, handler in before.items():
                signal.signal(number, handler)


def exit_code(stop: KeyboardInterrupt) -> int:
    """Return the exit code of a command that was stopped."""
    from common.system.commands import INTERRUPTED, TERMINATED

    return TERMINATED if isinstance(stop, Terminated) else INTERRUPTED


if __name__ == "__main__":
    main()
