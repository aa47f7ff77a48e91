"""`make results`: runs what claims need and is missing, and writes the findings and the page.

make results                                  # preset small: 20 minutes; runs/results/small/README.md
make results PRESET=full                      # hours; goes on where it stopped
make results CLAIM=near_and_far PRESET=full   # the runs of one claim
make results PRESET=full OUT=simulations/results    # the page of the project, as it was measured
python -m simulations.results --page          # the page again, from what was measured
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from common.errors import CaucusError, ConfigError
from simulations.results import cells, claims, data_sets, execution, findings, page, runs

WORK = Path("runs/results")
ABOUT = Path(__file__).parent / "about.md"


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point; exit code 2 for a wrong setting, 1 if runs failed, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(prog="make results", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--preset", default="small", help="small or full")
    parser.add_argument("--claim", default=None, help="name of one claim; all of the preset without it")
    parser.add_argument("--out", type=Path, help=f"folder of the page and its numbers; {WORK}/PRESET without it")
    parser.add_argument("--work", type=Path, default=WORK, help="folder of runs and caches")
    parser.add_argument("--page", action="store_true", help="run nothing")
    options = parser.parse_args(arguments)
    options.out = options.out or WORK / options.preset
    try:
        failed = results(options)
    except CaucusError as error:
        sys.stderr.write(f"make results: {error}\n")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.stderr.write("\nmake results: stopped; the same command goes on\n")
        sys.exit(130)
    sys.exit(1 if failed else 0)


def results(options: argparse.Namespace) -> int:
    """Run what is missing and write the page; the number of runs that failed."""
    chosen = _on_this_machine(cells.preset(options.preset))
    all_claims, lines = chosen.claims(claims.read_claims()), chosen.claims(claims.read_lines())
    asked = [claim for claim in (*all_claims, *lines) if options.claim in {None, claim.name}]
    if not asked:
        names = ", ".join(claim.name for claim in all_claims)
        raise ConfigError("CLAIM", expected=f"one of preset {chosen.name}: {names}", got=options.claim)
    file = options.out / runs.FILE
    known = runs.read(file)
    if not options.page:
        _run(chosen, asked, known, options)
    needed = {chosen.key(cell) for cell in cells.in_order(chosen, (*all_claims, *lines))}
    shown = [one for key, one in sorted(known.items()) if key in needed]
    runs.write(file, shown)
    failures = sorted({one.error for one in shown if one.error is not None})
    content = {
        "preset": chosen.name,
        "about": ABOUT.read_text(encoding="utf-8").strip(),
        "findings": [findings.finding(chosen, claim, known).to_dict() for claim in all_claims],
        "figure": [findings.finding(chosen, line, known).to_dict() for line in lines],
        "runs": {"planned": len(needed), "measured": sum(one.error is None for one in shown)},
        "core_hours": round(sum(one.seconds for one in shown) / 3600, 1),
        "failures": failures,
    }
    page.write(options.out, content)
    _say(f"{options.out / page.PAGE}")
    return len(failures)


def _run(
    chosen: cells.Preset, asked: list[claims.Claim], known: dict[str, runs.Result], options: argparse.Namespace
) -> None:
    wanted = cells.in_order(chosen, asked)
    absent = {cell.data for cell in wanted if not data_sets.is_there(cell.data)}
    if absent:
        _say(f"left out: {', '.join(sorted(absent))}, {data_sets.ABSENT.format(data_sets.data_folder())}")
    options.work.mkdir(parents=True, exist_ok=True)
    data_sets.write_files(options.work)
    left = execution.missing(chosen, [cell for cell in wanted if cell.data not in absent], known)
    _say(f"{len(wanted)} runs in all; {execution.forecast(len(left), list(known.values()))}")
    for done, one in enumerate(execution.run_all(chosen, left, options.work), start=1):
        runs.append(options.out / runs.FILE, one)
        known[one.key] = one
        figure = one.figures.get("utility_encoder.accuracy", one.figures.get("accuracy"))
        outcome = f"failed: {one.error}" if one.error else f"accuracy {figure}, {one.seconds:.0f} s"
        rest = execution.forecast(len(left) - done, list(known.values()))
        _say(f"[{done}/{len(left)}] {one.data}, seed {one.seed}, {' '.join(_own(chosen, one))}: {outcome}; {rest}")


def _on_this_machine(chosen: cells.Preset) -> cells.Preset:
    """The preset, with the demo's notes in place of data sets of its own that are not there."""
    if chosen.data is None or all(map(data_sets.is_there, chosen.data)):
        return chosen
    _say(f"the demo's notes in place of {', '.join(chosen.data)}, {data_sets.ABSENT.format(data_sets.data_folder())}")
    return replace(chosen, data=(data_sets.DEMO,))


def _own(chosen: cells.Preset, one: runs.Result) -> list[str]:
    """The overrides that tell a run from others."""
    common = {*chosen.base, *chosen.of_data[one.data], f"experiment_seed={one.seed}"}
    return [override for override in one.overrides if override not in common]


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
