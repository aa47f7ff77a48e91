"""Simulations from Python: the code of `caucus-simulate` and `caucus-coordinator plan`, with tables in memory.

    from simulations import plan, simulate

    notes = pd.DataFrame({"text": [...], "label": [...]})
    plan(labels=["flu", "cold"], public_text=sentences, epsilon=2)
    result = simulate(notes, held_out, public_text=sentences, epsilon=2)
    result.texts, result.metrics["synthetic"]["accuracy"], result.report

Tables in memory are written to a new folder that only this account can enter, outside the run folder. The new folder is
removed when the call ends, except after `kill -9`, or a signal outside the main thread. So the run folder contains no
more of the records than one written by the command, and `resume` needs the same tables again. Files given by their
paths are read in place, as by the command.

Every error is a `common.errors.CaucusError`, even if Hydra rejects a setting. A call leaves the working directory,
Hydra's state and the process's logging unchanged: the log is written to `run.log` in the run folder, and the logger
"caucus" also passes it on to the existing handlers. Meanwhile only their owner can open files that this process makes.
"""

import contextlib
import json
import logging
import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from hydra.core.global_hydra import GlobalHydra

from common import validate
from common.errors import CaucusError, CheckpointError, ConfigError
from common.system.files import only_for_owner, temporary_folder
from common.system.log_lines import LOG_FORMAT
from common.system.progress import Console, progress, warned_once
from server.deploy.plan_command import forwards
from server.documents.codec import strict, with_infinities
from server.documents.run import RunSummary
from server.failure import EXPECTED, LOG, WRONG_SETTINGS, missing_folders, remove_unused, summary
from server.prepare.calls import AGREED
from server.prepare.compose import compose_settings, reload_settings
from server.report.weaknesses import gravest_weaknesses
from server.settings.schema import Settings
from server.settings.sections import NO_LABELS, name_of, setting, with_values
from simulations import run
from simulations.api.result import Result
from simulations.api.tables import ALONE, LABELLED, PUBLIC, Table, Texts, as_file, is_path

__all__ = ["Result", "plan", "resume", "simulate"]

Labels = Mapping[str, str | None] | Iterable[str]
"""Labels with their public descriptions, or the labels alone; or "unlabelled" if the texts have no labels."""

_IN_MEMORY = "caucus-in-memory-"
_COLUMNS = {"train": LABELLED, "test": LABELLED, "public_text": PUBLIC}


def simulate(
    train: Table | None = None,
    test: Table | None = None,
    *,
    public_text: Texts | None = None,
    labels: Labels | None = None,
    method: str = "wasp",
    parties: int = 3,
    epsilon: float = 4.0,
    delta: float = 1e-5,
    folder: str | Path | None = None,
    overrides: Sequence[str] = (),
    config_dir: str | Path | None = None,
) -> Result:
    """Run a whole federation in this process, as `caucus-simulate` does.

    Example:
        >>> result = simulate(notes, held_out, public_text="guidelines.txt", overrides=["method.samples=500"])
        >>> result.texts.head(), result.privacy["epsilon"], result.report

    Args:
        train: Private records, which are dealt out to the parties; None uses the task in `overrides`, by default the
            demo's. Records without labels may be plain texts.
        test: Held-out records, on which the texts are evaluated.
        public_text: Public text, from which built-in models learn and which provides the examples in prompts.
        labels: The task's labels. None takes them from `train`, which only a simulation may do.
        method: Name of a method in `configs/method` or in `config_dir`.
        parties: Number of hospitals.
        epsilon: Total privacy loss, above 0; `math.inf` adds no noise.
        delta: A public constant, well below 1 / (number of records).
        folder: The run folder, new or empty; None for `runs/DATE/TIME-METHOD`, as with the command.
        overrides: Further settings, as on the command line; they take precedence over the arguments, but cannot repeat
            `labels`.
        config_dir: Folder of your own configurations, as with the command's `--config-dir`.

    Returns:
        The complete result. After Ctrl-C, or if a model fails, the run can be continued from its folder (`resume`).

    Raises:
        CaucusError: ConfigError or DataError before any private data is queried; other errors if the run fails.
    """
    with temporary_folder(_IN_MEMORY) as private, _errors_of_ours(private):
        named = {"train": train, "test": test, "public_text": public_text}
        labels = _checked(labels)
        tables = _files(named, private, labelled=labels != NO_LABELS)
        settings = _settings(
            tables, labels, overrides, config_dir, method=method, parties=parties, epsilon=epsilon, delta=delta
        )
        return _run(settings, Path(folder) if folder else _new_folder(settings.method.name))


def resume(
    folder: str | Path,
    train: Table | None = None,
    test: Table | None = None,
    *,
    public_text: Texts | None = None,
    overrides: Sequence[str] = (),
) -> Result:
    """Continue a run after its last completed round, as `caucus-simulate --resume` does.

    Args:
        folder: The run folder.
        train: The table that the run was started with, if it was in memory. Others would break the guarantee, and are
            refused.
        test: The test table that the run was started with, if it was in memory.
        public_text: The public texts that the run was started with, if they were in memory.
        overrides: New caps on spending, such as `llm.max_cost=20`.

    Raises:
        CaucusError: As in `simulate`; it is a CheckpointError if the run cannot be resumed.
    """
    with temporary_folder(_IN_MEMORY) as private, _errors_of_ours(private):
        with _hydra_of_ours():
            settings = reload_settings(Path(folder), overrides)
        named = {"train": train, "test": test, "public_text": public_text}
        tables = _files(named, private, labelled=setting(settings, "task.labels") != NO_LABELS)
        for name in _COLUMNS:
            if name in tables:
                settings = with_values(settings, {f"task.{name}": str(tables[name])})
            elif _IN_MEMORY in str(setting(settings, f"task.{name}")):
                got = "none: it was in memory, and is not kept"
                do = f"Call resume(folder, {name}=...)"
                raise CheckpointError(name, expected="the table that the run was started with", got=got, do=do)
        return _run(settings, Path(folder))


def plan(
    train: Table | None = None,
    test: Table | None = None,
    *,
    public_text: Texts | None = None,
    labels: Labels | None = None,
    method: str = "wasp",
    parties: int = 3,
    epsilon: float = 4.0,
    delta: float = 1e-5,
    overrides: Sequence[str] = (),
    config_dir: str | Path | None = None,
) -> dict[str, Any]:
    """Return the queries and the cost of a run with these arguments, without reading any private records.

    The content is what `caucus-coordinator plan --json` prints: every query with its sensitivity, noise and expected
    signal, the total ε and δ, and the expected calls and tokens. As records are not read, `labels` are required, and
    the signal requires a public guess of the number of records: `overrides=["federation.expected_records=300"]`.

    Args:
        train: Not read; accepted so that the arguments can be those of `simulate`.
        test: Not read.
        public_text: As in `simulate`.
        labels: The task's labels.
        method: As in `simulate`.
        parties: Number of hospitals.
        epsilon: Total privacy loss.
        delta: A public constant.
        overrides: Further settings.
        config_dir: Folder of your own configurations.

    Raises:
        CaucusError: A setting is invalid, or no plan can be made.
    """
    with temporary_folder(_IN_MEMORY) as private, _errors_of_ours(private):
        named = {"train": train, "test": test, "public_text": public_text}
        labels = _checked(labels)
        tables = _files(named, private, unread=("train", "test"))
        settings = _settings(
            tables, labels, overrides, config_dir, method=method, parties=parties, epsilon=epsilon, delta=delta
        )
        with progress("planning"):
            facts: dict[str, Any] = with_infinities(json.loads(json.dumps(strict(forwards(settings)[1]))))
        return facts


def _files(
    tables: Mapping[str, Table | Texts | None], folder: Path, *, unread: Sequence[str] = (), labelled: bool = True
) -> dict[str, Path]:
    """Return the paths of the given tables, keyed by name; write tables in memory to `folder` unless in `unread`."""
    columns = _COLUMNS if labelled else {"train": ALONE, "test": ALONE, "public_text": PUBLIC}
    if tables.get("train") is not None and tables.get("train") is tables.get("public_text"):
        raise ConfigError("public_text is the same table as train", do="Give texts that are public")
    return {
        name: folder / name if name in unread and not is_path(table) else as_file(name, table, columns[name], folder)
        for name, table in tables.items()
        if table is not None
    }


def _checked(labels: Labels | None) -> Mapping[str, str | None] | str | None:
    """Return the labels with their descriptions, or "unlabelled"; None if there are none.

    Raises:
        ConfigError: The labels are another text, which is no list.
    """
    if isinstance(labels, str):
        validate.one_of("labels", labels, among=(NO_LABELS,))
        return labels
    return labels if labels is None or isinstance(labels, Mapping) else dict.fromkeys(labels)


def _settings(
    tables: Mapping[str, Path],
    labels: Mapping[str, str | None] | str | None,
    overrides: Sequence[str],
    config_dir: str | Path | None,
    *,
    method: str,
    parties: int,
    epsilon: float,
    delta: float,
) -> Settings:
    """Check the arguments, and return the settings made from them and from the overrides, which take precedence."""
    with contextlib.suppress(TypeError):
        parties = operator.index(parties)  # of any library's integer
    validate.integers(1, parties=parties)
    validate.positive(epsilon=epsilon, infinite=True)
    validate.probability(delta=delta)
    _check_overrides(overrides, labels)
    if config_dir is not None and not Path(config_dir).is_dir():
        raise ConfigError("config_dir", expected="a folder of configurations", got="none", where=config_dir)
    given = [
        *([f"hydra.searchpath=[{_quoted(f'file://{Path(config_dir).resolve()}')}]"] if config_dir else []),
        f"method={method}",
        f"federation.parties={parties}",
        f"privacy.epsilon={float(epsilon)}",
        f"privacy.delta={float(delta)}",
        *(["task=csv"] if tables or isinstance(labels, Mapping) else []),
        *(f"task.{name}={_quoted(str(path))}" for name, path in tables.items()),
        *overrides,
    ]
    with _hydra_of_ours():
        settings = compose_settings(given)
    if labels is None:
        return settings
    return with_values(settings, {"task.labels": dict(labels) if isinstance(labels, Mapping) else labels})


def _check_overrides(overrides: Sequence[str], labels: object) -> None:
    if isinstance(overrides, str) or not all(isinstance(override, str) for override in overrides):
        raise ConfigError("overrides", expected="a list of settings such as 'method.samples=500'", got=repr(overrides))
    names = set(map(name_of, overrides))
    if labels is not None and any(name == "task.labels" or name.startswith("task.labels.") for name in names):
        raise ConfigError("labels=... and an override of task.labels are given", do="Leave one of them out")
    if of_hydra := [name for name in sorted(names) if name.startswith("hydra")]:
        do = "Give the run folder as folder=... and your own configurations as config_dir=..."
        raise ConfigError("overrides", expected="settings of a run", got=of_hydra[0], do=do)


def _quoted(text: str) -> str:
    """Return the text quoted for Hydra's grammar, in which a backslash is special only before a quote."""
    return "'" + re.sub(r"(\\*)('|$)", lambda match: match[1] * 2 + ("\\'" if match[2] else ""), text) + "'"


def _run(settings: Settings, folder: Path) -> Result:
    made = missing_folders(folder)
    with only_for_owner(), _logging_to(folder):
        try:
            run.simulate(with_values(settings, AGREED), folder)  # a program is told in the log, and not asked
            for weakness in gravest_weaknesses(folder, of_inputs=False):
                run.log.warning("%s", weakness)
        except (KeyboardInterrupt, *EXPECTED) as stopped:
            if (folder / RunSummary.FILE).exists() and not isinstance(stopped, CheckpointError):
                cause = stopped.__cause__ if isinstance(stopped.__cause__, CaucusError) else stopped
                cause.add_note(f"simulations.resume({str(folder)!r}), with the tables that were in memory, goes on.")
            remove_unused(made)
            raise
    return Result.load(folder)


def _new_folder(method: str) -> Path:
    now = datetime.now().astimezone()
    folder = Path("runs") / f"{now:%Y-%m-%d}" / f"{now:%H-%M-%S}-{method}"
    number = 2
    while folder.exists():
        folder = folder.with_name(f"{now:%H-%M-%S}-{method}-{number}")
        number += 1
    return folder


@contextlib.contextmanager
def _errors_of_ours(private: Path) -> Iterator[None]:
    """Convert an error of Hydra into one of our errors, without Hydra's fifty lines of traceback.

    Errors name a row of a table in memory by its place in the table, not in the file that the call wrote to `private`.
    """
    try:
        yield
    except WRONG_SETTINGS as error:
        cause = error.__cause__
        ours = cause.with_traceback(None) if isinstance(cause, CaucusError) else ConfigError(summary(error))
        raise ours from None
    except CaucusError as error:
        if match := re.fullmatch(rf"{re.escape(str(private))}/(\w+)\.jsonl(?::(\d+))?", str(error.where)):
            error.where = match[1] if match[2] is None else f"{match[1]}.iloc[{int(match[2]) - 1}]"
        raise error from (None if isinstance(error.__cause__, WRONG_SETTINGS) else error.__cause__)


@contextlib.contextmanager
def _hydra_of_ours() -> Iterator[None]:
    """Clear Hydra's global state for our configurations, and restore it afterwards for programs that use Hydra."""
    theirs = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        yield
    finally:
        GlobalHydra.instance().hydra = theirs


@contextlib.contextmanager
def _logging_to(folder: Path) -> Iterator[None]:
    """Write the log to `run.log` in the folder; warnings are also shown if the program has no handler for them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise ConfigError("the folder is, or is inside, a file", where=folder, do="Give another folder") from error
    logger = logging.getLogger("caucus")
    level, file = logger.level, logging.FileHandler(folder / LOG)
    file.setFormatter(logging.Formatter(LOG_FORMAT))
    handlers: list[logging.Handler] = [file]
    if logging.lastResort and not logger.hasHandlers():
        handlers.append(Console())
        handlers[-1].setLevel(logging.WARNING)
    for handler in handlers:
        logger.addHandler(handler)
    logger.setLevel(min(logger.getEffectiveLevel(), logging.INFO))
    try:
        with warned_once(*handlers):
            yield
    finally:
        logger.setLevel(level)
        for handler in handlers:
            logger.removeHandler(handler)
        file.close()
