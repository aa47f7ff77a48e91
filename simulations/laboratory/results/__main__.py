"""`make results`: makes the missing runs for all claims, and writes the page.

make results                                  # preset small: 20 minutes; runs/results/small/README.md
make results PRESET=full                      # hours; continues where it stopped
make results CLAIM=near_and_far PRESET=full   # the runs of one claim
make results PRESET=full OUT=simulations/laboratory/results    # the page of the project, as it was measured
python -m simulations.laboratory.results --page          # the page again, from what was measured with preset small

A result that no claim needs any more, for instance after a change of settings, is moved from the page's folder to the
folder of the runs, and is used again when a claim needs it.
"""

import argparse
import contextlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from common.errors import CaucusError, ConfigError
from server.failure import sole_process
from simulations.laboratory.output import show
from simulations.laboratory.results import cells, claims, data_sets, execution, findings, page, runs

WORK = Path("runs/results")
UNNEEDED = "unneeded.jsonl"
PUBLISHED = ("full", "chat")
"""Presets of the project's own pages."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; exit with 1 if runs failed, 2 for a wrong setting or folder, 130 on Ctrl-C."""
    parser = argparse.ArgumentParser(prog="make results", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--preset", default="small", help="small, full or chat")
    parser.add_argument("--claim", default=None, help="name of one claim; all of the preset without it")
    parser.add_argument("--out", type=Path, help=f"folder of the page and its numbers; {WORK}/PRESET without it")
    parser.add_argument("--work", type=Path, default=WORK, help="folder of runs and caches")
    parser.add_argument("--page", action="store_true", help="run nothing")
    options = parser.parse_args(arguments)
    options.out = options.out or WORK / options.preset
    try:
        # Two concurrent commands would overwrite each other's results.
        with contextlib.nullcontext() if options.page else sole_process(options.work):
            failed = results(options)
    except CaucusError as error:
        sys.stderr.write(f"make results: {error}\n")
        sys.exit(2)
    except OSError as error:  # a full disk, or a folder that cannot be written
        sys.stderr.write(f"make results: {error}; what was measured before is kept\n")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.stderr.write("\nmake results: stopped; the same command goes on\n")
        sys.exit(130)
    sys.exit(1 if failed else 0)


def results(options: argparse.Namespace) -> int:
    """Make the missing runs and write the page; return the number of distinct reasons for failures."""
    chosen = _on_this_machine(cells.preset(options.preset))
    all_claims, lines = chosen.claims(claims.read_claims()), chosen.claims(claims.read_lines())
    asked = [claim for claim in (*all_claims, *lines) if options.claim in {None, claim.name}]
    if not asked:
        names = [claim.name for claim in all_claims]
        similar = get_close_matches(options.claim, names, 3) or names
        expected = f"a claim of preset {chosen.name}, such as {', '.join(similar)}"
        raise ConfigError("CLAIM", expected=expected, got=options.claim)
    unneeded = runs.read_results(options.work / UNNEEDED)
    file = options.out / runs.FILE.format(chosen.name)
    known = unneeded | runs.read_results(file)
    needed = {chosen.key(cell) for cell in cells.cells_in_order(chosen, (*all_claims, *lines))}
    if not options.page:
        _run(chosen, asked, known, work=options.work, file=file)
        for key in sorted(known.keys() - needed - unneeded.keys()):
            runs.append(options.work / UNNEEDED, known[key])
        named = {name for claim in (*all_claims, *lines) for name in (claim.figure, findings.worst_figure(claim))}
        kept = [known[key] for key in sorted(known.keys() & needed)]
        runs.write_results(file, [runs.with_only(one, named) for one in kept])
    models = published() if options.out.resolve() == cells.HERE else [measured(chosen, known)]
    page.write_pages(options.out, models)
    show(f"{options.out / page.PAGE}\n")
    return sum(len(one.failures) for one in models)


def published() -> list[page.Measured]:
    """Return what the project's own pages show, for each preset of theirs."""
    return [measured(cells.preset(name), runs.read_results(cells.HERE / runs.FILE.format(name))) for name in PUBLISHED]


def measured(chosen: cells.Preset, known: Mapping[str, runs.RunMeasurements]) -> page.Measured:
    """Return what the pages show of these results."""
    all_claims, lines = chosen.claims(claims.read_claims()), chosen.claims(claims.read_lines())
    needed = {chosen.key(cell) for cell in cells.cells_in_order(chosen, (*all_claims, *lines))}
    shown = [known[key] for key in sorted(known.keys() & needed)]
    return page.Measured(
        preset=chosen.name,
        model=chosen.model,
        findings=[findings.finding(chosen, claim, known) for claim in all_claims],
        lines=[findings.finding(chosen, line, known) for line in lines],
        planned=len(needed),
        measured=sum(one.error is None for one in shown),
        core_hours=round(sum(one.seconds for one in shown) / 3600, 1),
    )


def _run(
    chosen: cells.Preset, asked: list[claims.Claim], known: dict[str, runs.RunMeasurements], *, work: Path, file: Path
) -> None:
    wanted = cells.cells_in_order(chosen, asked)
    absent = {cell.data for cell in wanted if not data_sets.is_there(cell.data)}
    if absent:
        show(f"left out: {', '.join(sorted(absent))}, {data_sets.ABSENT.format(data_sets.data_folder())}\n")
    data_sets.write_files(work)
    left = execution.missing(chosen, [cell for cell in wanted if cell.data not in absent], known)
    if left:
        execution.check_models(chosen, left)
    show(f"{len(wanted)} runs in all; {execution.forecast(len(left), list(known.values()))}\n")
    cells_by_key = {chosen.key(cell): cell for cell in left}
    for done, one in enumerate(execution.run_all(chosen, left, work), start=1):
        runs.append(file, one)
        known[one.key] = one
        figure = one.figures.get("utility_encoder.accuracy", one.figures.get("accuracy"))
        outcome = f"failed: {one.error}" if one.error else f"accuracy {figure}, {one.seconds:.0f} s"
        rest = execution.forecast(len(left) - done, list(known.values()))
        overrides = " ".join(cells_by_key[one.key].overrides)
        show(f"[{done}/{len(left)}] {one.data}, seed {one.seed}, {overrides}: {outcome}; {rest}\n")


def _on_this_machine(chosen: cells.Preset) -> cells.Preset:
    """Return the preset; if any of its data sets are missing, the demo's messages replace them all."""
    if chosen.data is None or all(map(data_sets.is_there, chosen.data)):
        return chosen
    absent = data_sets.ABSENT.format(data_sets.data_folder())
    show(f"the demo's messages in place of {', '.join(chosen.data)}, {absent}\n")
    return replace(chosen, data=(data_sets.DEMO,))


if __name__ == "__main__":
    main()
