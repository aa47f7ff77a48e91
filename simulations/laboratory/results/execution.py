"""Executes the missing runs in two processes, each run in a separate folder; a run that was stopped is continued.

All runs share a cache of replies and one of embeddings, so that runs that differ only after the first round write the
texts of that round once. A failed run is recorded with its reason, and is tried again by the next `make results`.
"""

import functools
import logging
import multiprocessing
import os
import re
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path

from common.errors import CaucusError, CheckpointError, FolderInUseError
from common.models import catalogue
from common.system.files import only_for_owner
from simulations.laboratory.results.cells import Cell, Preset
from simulations.laboratory.results.data_sets import data_folder
from simulations.laboratory.results.runs import RunMeasurements

log = logging.getLogger("caucus.results")

PROCESSES = 2
PER_POOL = 40
"""Number of runs after which the processes are replaced, which frees memory. The pool's own `max_tasks_per_child` can
hang in Python 3.11."""


def missing(chosen: Preset, cells: Sequence[Cell], results: Mapping[str, RunMeasurements]) -> list[Cell]:
    """Return the cells that have not been run, or for which the run failed."""
    return [cell for cell in cells if (known := results.get(chosen.key(cell))) is None or known.error is not None]


def check_models(chosen: Preset, cells: Sequence[Cell]) -> None:
    """Check that the models that any of the runs uses have been fetched.

    Raises:
        ConfigError: A model has not been fetched.
    """
    values = {override.partition("=")[2] for cell in cells for override in chosen.overrides(cell)}
    for name in {name for value in values for name in re.findall(r"\w+", value)} & set(catalogue.catalogue()):
        catalogue.folder(name)


def forecast(cells: int, results: Sequence[RunMeasurements]) -> str:
    """Return a phrase with the number of remaining runs, and their minutes if any run was measured."""
    times = [one.seconds for one in results if one.error is None]
    minutes = f", about {cells * sum(times) / len(times) / PROCESSES / 60:.0f} minutes" if times else ""
    return f"{cells} runs left{minutes} with {PROCESSES} processes"


def run_all(chosen: Preset, cells: Sequence[Cell], work: Path) -> Iterator[RunMeasurements]:
    """Run the cells, and yield each result as soon as it is available.

    Args:
        chosen: The preset.
        cells: Cells in the order in which they start.
        work: Folder of run folders and caches.

    Raises:
        CaucusError: A process was killed.
    """
    os.environ["TQDM_DISABLE"] = "1"  # two bars on one terminal
    for start in range(0, len(cells), PER_POOL):
        with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn"), _watch_parent) as pool:
            futures = [_submit(pool, chosen, cell, work) for cell in cells[start : start + PER_POOL]]
            try:
                for future in as_completed(futures):
                    yield future.result()
            except BrokenProcessPool as error:
                got = "killed, perhaps for want of memory"
                do = "Finished measurements are kept, and the same command goes on"
                raise CaucusError("a process of the runs", expected="to work until its end", got=got, do=do) from error
            except BaseException:
                # A run takes minutes, and goes on from its last round: nothing is lost by ending it at once.
                pool.shutdown(wait=False, cancel_futures=True)
                for process in multiprocessing.active_children():
                    process.kill()
                raise


def _watch_parent() -> None:
    """End this process as soon as the command ends in any way, since its run goes on from its last round.

    `common.system.processes.ends_with` has Linux's kernel do so. Simulations may run on other systems.
    """

    def end() -> None:
        if parent := multiprocessing.parent_process():
            parent.join()
            os._exit(1)

    threading.Thread(target=end, daemon=True).start()


def _submit(pool: ProcessPoolExecutor, chosen: Preset, cell: Cell, work: Path) -> Future[RunMeasurements]:
    overrides = with_folders(chosen.overrides(cell), work)
    overrides += [f"reply_cache={work.resolve()}/replies.db", f"embedding_cache={work.resolve()}/vectors.db"]
    blank = RunMeasurements(key=chosen.key(cell), data=cell.data, seed=cell.seed)
    return pool.submit(run_one, blank, overrides, work / "runs" / blank.key)


@only_for_owner()
def run_one(blank: RunMeasurements, overrides: Sequence[str], folder: Path) -> RunMeasurements:
    """Make one run in this process; return `blank` with the run's measurements, or with the reason for its failure.

    A run that cannot be continued because the program has changed is started again, with replies from the cache.
    """
    from server.failure import EXPECTED, LOG, is_at_work, summary
    from server.prepare.calls import AGREED
    from server.prepare.compose import compose_settings, reload_settings
    from server.settings.sections import with_values
    from simulations.run import simulate

    if is_at_work(folder):  # a run that somebody else began
        return replace(blank, error=f"another process works in {folder}")
    goes_on = (folder / "state").exists()
    if not goes_on:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    logging.basicConfig(filename=folder / LOG, level=logging.INFO, force=True)
    logging.captureWarnings(capture=True)
    started = time.monotonic()
    try:
        simulate(
            with_values(reload_settings(folder, []) if goes_on else compose_settings(list(overrides)), AGREED), folder
        )
    except CheckpointError as error:
        if not goes_on or isinstance(error, FolderInUseError):
            return replace(blank, error=summary(error))
        shutil.rmtree(folder)
        return run_one(blank, overrides, folder)
    except EXPECTED as error:
        return replace(blank, error=summary(error))
    except Exception as error:
        log.exception("a bug, or a library's error")
        return replace(blank, error=f"{type(error).__name__}: {summary(error)}; its traceback is in {folder / LOG}")
    return replace(with_figures(blank, folder), seconds=round(time.monotonic() - started, 1))


def with_figures(blank: RunMeasurements, folder: Path) -> RunMeasurements:
    """Return `blank` with the figures of the run in this folder, including accuracy and last FID."""
    from simulations.sweeps.runs import read_rounds, read_run

    run = read_run(folder)
    if "error" in run:
        return replace(blank, error=run["error"])
    figures = {name.replace(": ", ".").replace(" ", "_"): value for name, value in run["figures"].items()}
    last = [line["fid"] for line in read_rounds(folder) if line["fid"] is not None][-1:]
    figures |= {"accuracy": run["accuracy"]} if run["accuracy"] is not None else {}
    figures |= {"fid": last[0]} if last else {}
    return replace(blank, figures=figures)


def with_folders(overrides: Sequence[str], work: Path) -> list[str]:
    """Return the overrides with paths in place of the placeholders {data}, {work} and {here}."""
    folders = {"{data}": data_folder(), "{work}": work.resolve(), "{here}": Path(__file__).parent}
    return [
        functools.reduce(lambda text, name: text.replace(name, str(folders[name])), folders, override)
        for override in overrides
    ]
