"""`caucus-simulate` after its first line: composes the settings, runs or resumes a run or a sweep, reports its end.

    caucus-simulate method=wasp task=demo_notes federation.parties=3 privacy.epsilon=4
    caucus-simulate --resume RUN [llm.max_cost=20]
    caucus-simulate --multirun federation.parties=1,10,50 privacy.epsilon=1,4,8 hydra/launcher=joblib
    caucus-simulate +experiment=wasp_table2 method.samples=1000

Settings are checked before large packages are imported. An invalid setting or a failing component is reported in one
line, with an exit code; any other error is a bug, and is shown with its traceback. After Ctrl-C or SIGTERM, `--resume`
continues the run.
"""

import logging
import math
import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from tqdm import tqdm

from common.errors import CaucusError, CheckpointError, ConfigError, FolderInUseError, ModelSettingError
from common.system.commands import command_to_copy, escape_unknown_letters, exit_code
from common.system.files import text_of
from common.system.log_lines import LOG_FORMAT
from common.system.progress import Console, progress, warned_once
from common.validate import suggest_name
from server.documents.privacy import Privacy
from server.documents.rounds import RoundReport
from server.documents.run import REFUSED, RunSummary
from server.failure import EXPECTED, FAILURE, LOG, WRONG_SETTINGS, remove_unused, summary
from server.prepare.compose import (
    SEARCH_PATH,
    check_simulation,
    load_settings,
    misprint_error,
    plain,
    reload_settings,
    typed_settings,
)
from server.prepare.misprints import CONFIGS
from server.settings.reading import mapping_of
from server.settings.schema import Settings
from simulations.sweeps import combinations
from simulations.sweeps.combinations import RESUME, relative_path, resumption

if TYPE_CHECKING:
    from server.report.verdict import Judgement

log = logging.getLogger("caucus.simulation")

YES = "--yes"
OPTIONS = (RESUME, YES, "--multirun", "--config-dir", "--cfg", "--resolve", "--hydra-help")
"""Options that are suggested for a misspelt option; --version is left out, since --epsilon resembles it."""


def launch_command(arguments: Sequence[str]) -> None:
    """Run the command with these arguments.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed, or SIGTERM came; the message explains how to continue.
        SystemExit: A setting is invalid, or a component failed.
    """
    escape_unknown_letters()
    logging.captureWarnings(capture=True)
    agreed = ["llm.confirm_calls=null"] * (YES in arguments)
    arguments = [argument for argument in arguments if argument != YES]
    sweep = Path(arguments[1]) if len(arguments) == 2 and arguments[0] == RESUME else None
    if sweep and (sweep / combinations.PLANNED).exists():
        _by_hydra([*combinations.resuming_arguments(sweep), *agreed])
    elif RESUME in arguments:
        _resume([*arguments, *agreed])
    else:
        _by_hydra([*arguments, *agreed])


def _by_hydra(arguments: Sequence[str]) -> None:
    overrides, multirun = _options_first(arguments)
    os.environ["HYDRA_FULL_ERROR"] = "1"  # its errors come here, instead of being printed in many lines
    try:
        _composed()
    except WRONG_SETTINGS as error:
        _exit(misprint_error(error, overrides, sweep=multirun))
    except (OSError, ValueError) as error:
        inside = any(frame.name == "_composed" for frame in traceback.extract_tb(error.__traceback__))
        if inside or error.__cause__:  # of the run itself, here or in a worker: a bug
            raise
        if isinstance(error, ValueError):
            _exit(misprint_error(error, overrides, sweep=multirun))
        name = "hydra.sweep.dir" if multirun else "hydra.run.dir"
        _exit(ConfigError(name, expected="a folder that can be made", got=error.strerror, where=error.filename))
    except KeyboardInterrupt as stop:
        if not stop.args and (state := _sweep_stopped()):
            raise type(stop)(state) from None
        raise
    except RuntimeError as error:
        if type(error).__qualname__ != "UncompletedJobError":  # submitit's, which need not be installed
            raise
        _exit(_job_lost())


def _options_first(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """Move the options before the settings in `sys.argv`, since Hydra rejects settings on both sides of an option.

    Returns:
        The overrides, and whether `--multirun` was among the options, so that several values mean several runs.
    """
    parsed, others = get_args_parser().parse_known_intermixed_args(arguments)
    for name in (argument.partition("=")[0] for argument in others if argument.startswith("-")):
        do = suggest_name(name, OPTIONS) or "Settings are written without dashes: privacy.epsilon=4"
        _exit(ConfigError(name, got="an unknown option", do=do))
    options = list(arguments)
    for override in parsed.overrides:
        options.remove(override)
    sys.argv[1:] = [*options, *parsed.overrides]
    return parsed.overrides, parsed.multirun


def _sweep_stopped() -> str:
    """Return the message about a stopped sweep with runs in other processes; empty if no sweep has begun."""
    if not HydraConfig.initialized() or HydraConfig.get().mode != RunMode.MULTIRUN:
        return ""
    hydra_config = HydraConfig.get()
    sweep = relative_path(Path(hydra_config.sweep.dir))
    if not (sweep / combinations.PLANNED).exists():
        return ""
    on_a_cluster = str(hydra_config.runtime.choices["hydra/launcher"]).startswith("submitit")
    jobs = "; the cluster's jobs go on: end them before, with scancel" if on_a_cluster else ""
    return f"stopped: {combinations.remaining_runs(sweep)}{jobs}"


def _job_lost() -> CaucusError:
    sweep = relative_path(Path(HydraConfig.get().sweep.dir))
    do = f"Its log is there. Once no job of the sweep runs any more, {resumption(sweep)}"
    return CaucusError("job of the cluster", expected="a result", got="none", where=sweep / ".submitit", do=do)


@hydra.main(config_path=f"pkg://{CONFIGS}", config_name="simulation", version_base="1.3")
def _composed(config: object) -> None:
    hydra_config = HydraConfig.get()
    folder, overrides = relative_path(Path(hydra_config.runtime.output_dir)), list(hydra_config.overrides.task)
    if hydra_config.mode != RunMode.MULTIRUN:
        _or_exit(folder, lambda: typed_settings(config))
        _say_ending(folder, lambda judgement: command_to_copy("caucus-simulate", *_next_run(folder, judgement)))
        return
    if multiprocessing.parent_process():
        # Ctrl-C reaches the workers of a parallel sweep too; the process that started them ends them.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        tqdm.set_lock(threading.RLock())  # its own, a semaphore, would be said to be leaked by a worker that is ended
    number, runs = hydra_config.job.num + 1, len(combinations.planned_overrides(Path(hydra_config.sweep.dir)))
    log.info("run %d of %d: %s → %s", number, runs, ", ".join(overrides), folder)
    if combinations.is_complete(folder):
        log.info("it is complete")
        return
    composed = plain(config)
    try:
        settings = combinations.with_overrides(check_simulation(typed_settings(config)), overrides)
        composed = mapping_of(settings)
        _simulated(combinations.settings_to_continue(settings, overrides, folder), folder)
        (folder / FAILURE).unlink(missing_ok=True)
    except FolderInUseError as error:
        log.error("%s", summary(error))  # noqa: TRY400 what that process makes of the run is its result
    except EXPECTED as error:
        # The sweep goes on, and its table shows this run as failed.
        log.error("%s", summary(error))  # noqa: TRY400
        combinations.record_failure(composed, overrides, folder, summary(error))
    except KeyboardInterrupt as stop:
        combinations.record_failure(composed, overrides, folder, _stopped(folder))
        raise type(stop)(
            f"stopped: {combinations.remaining_runs(relative_path(Path(hydra_config.sweep.dir)))}"
        ) from None


def _next_run(folder: Path, judgement: "Judgement") -> list[str]:
    """Return arguments of the run or sweep that teaches most after this run, with its other settings.

    It is a sweep over ε, or a run without noise if the answers are not shown to help. If they are not shown to help
    without noise either, the run has no queries, or the hospitals' limits allow no other ε, it is a sweep over seeds.
    """
    from server.report.verdict import WITHOUT_GAIN
    from simulations.federation.parties import party_settings

    hydra_config = HydraConfig.get()
    overrides = hydra_config.overrides
    sources: Any = hydra_config.runtime.config_sources
    privacy = Privacy.load(folder)
    settings = check_simulation(load_settings(folder))
    limits = party_settings(settings.client).limits
    most = min(limits.max_epsilon, limits.lifetime_epsilon or math.inf)
    epsilons = [math.inf] if judgement in WITHOUT_GAIN else [1.0, 4.0, 16.0]
    allowed = [epsilon for epsilon in epsilons if epsilon <= most]
    if privacy.queries and set(allowed) - {settings.privacy.epsilon}:
        tried = f"privacy.epsilon={','.join(f'{epsilon:g}' for epsilon in allowed)}"
    else:
        tried = f"{combinations.SEED}0,1,2"
    sweep = ["--multirun"] * ("," in tried)
    changed = (combinations.SEED, tried[: tried.index("=") + 1])
    others = [override for override in overrides.task if not override.lstrip("+").startswith(changed)]
    others += [override for override in overrides.hydra if override.startswith(f"{SEARCH_PATH}=")]
    return [*combinations.config_dir(sources), *sweep, tried, *others]


def _resume(arguments: Sequence[str]) -> None:
    try:
        if arguments[0] != RESUME or len(arguments) < 2:
            do = f"Give {RESUME} and the folder of a run before all else"
            raise CheckpointError("no run is named to resume", got=" ".join(arguments), do=do)
        folder = Path(arguments[1])
        settings = reload_settings(folder, arguments[2:])
    except CaucusError as error:
        _exit(error)
    handlers = (Console(), logging.FileHandler(folder / LOG))
    logging.basicConfig(
        level=logging.WARNING,  # as configs/simulation.yaml has it
        format=LOG_FORMAT,
        handlers=handlers,
    )
    logging.getLogger("caucus").setLevel(logging.INFO)
    with warned_once(*handlers):
        _or_exit(folder, lambda: settings)
    _say_ending(folder)


def _or_exit(folder: Path, settings: Callable[[], Settings]) -> None:
    """Run a simulation with these settings; exit with a message if it fails.

    Raises:
        KeyboardInterrupt, SystemExit: As `launch_command`.
    """
    try:
        _simulated(settings(), folder)
    except EXPECTED as error:
        log.debug("where it came from", exc_info=True)
        # An error of the run folder itself, or of settings that a resumed run keeps, says what to do.
        lasting = isinstance(error, (CheckpointError, ModelSettingError))
        resumable = (folder / RunSummary.FILE).exists() and not lasting
        remove_unused(combinations.made)
        _exit(error, f"\n{resumption(folder)}." if resumable else "")
    except KeyboardInterrupt as stop:
        said = f"{_stopped(folder)}; {resumption(folder)}" if (folder / "config.yaml").exists() else ""
        raise type(stop)(*[said] * bool(said)) from None


def _simulated(settings: Settings, folder: Path) -> None:
    log.info("loading; all files go to %s", folder)
    with progress("running", logged=False):
        from simulations.run import simulate

        simulate(settings, folder)


def _say_ending(folder: Path, following: "Callable[[Judgement], str] | None" = None) -> None:
    from server.report.ending import ending

    sys.stdout.write("".join(f"{line}\n" for line in ending(folder, following)))
    if RunSummary.load(folder).status == REFUSED:
        sys.exit(1)


def _stopped(folder: Path) -> str:
    rounds = text_of(folder / RoundReport.FILE).count("\n")
    return f"stopped; rounds done: {rounds}" if rounds else "stopped before the end of round 1"


def _exit(error: Exception, advice: str = "") -> NoReturn:
    sys.stderr.write(f"caucus-simulate: {summary(error)}{advice}\n")
    sys.exit(exit_code(error, WRONG_SETTINGS))
