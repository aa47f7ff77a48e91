"""`make results`: makes the missing runs for all claims, and writes the findings and the page.

make results                                  # preset small: 20 minutes; runs/results/small/README.md
make results PRESET=full                      # hours; continues where it stopped
make results CLAIM=near_and_far PRESET=full   # the runs of one claim
make results PRESET=full OUT=simulations/laboratory/results    # the page of the project, as it was measured
python -m simulations.laboratory.results --page          # the page again, from what was measured with preset small

A result that no claim needs any more, for instance after a change of settings, is moved from the page's folder to the
folder of the runs, and is used again when a claim needs it.

The project's page shows a claim as `earlier.json` has it until all of its runs are made again. To measure anew, put the
findings of `findings.json` there, with their version, and empty `runs.jsonl`.
"""

import argparse
import contextlib
import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from common.errors import CaucusError, ConfigError
from server.failure import sole_process
from simulations.laboratory.results import cells, claims, data_sets, execution, findings, page, runs

WORK = Path("runs/results")
UNNEEDED = "unneeded.jsonl"
ABOUT = Path(__file__).parent / "about.md"
MEASURED = Path(__file__).parent / "measured.md"
"""The version that the project's own page was measured with; another page is measured with the present one."""
EARLIER = Path(__file__).parent / "earlier.json"
"""Findings of the last version that measured all claims, from its `findings.json`."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; exit with 1 if runs failed, 2 for a wrong setting or folder, 130 on Ctrl-C, 143 on SIGTERM."""
    parser = argparse.ArgumentParser(prog="make results", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--preset", default="small", help="small or full")
    parser.add_argument("--claim", default=None, help="name of one claim; all of the preset without it")
    parser.add_argument("--out", type=Path, help=f"folder of the page and its numbers; {WORK}/PRESET without it")
    parser.add_argument("--work", type=Path, default=WORK, help="folder of runs and caches")
    parser.add_argument("--page", action="store_true", help="run nothing")
    options = parser.parse_args(arguments)
    options.out = options.out or WORK / options.preset
    # As Ctrl-C does, so that the processes of the runs end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
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
        raise ConfigError(
            "CLAIM", expected=f"a claim of preset {chosen.name}, such as {', '.join(similar)}", got=options.claim
        )
    unneeded = runs.read(options.work / UNNEEDED)
    known = unneeded | runs.read(options.out / runs.FILE)
    needed = {chosen.key(cell) for cell in cells.in_order(chosen, (*all_claims, *lines))}
    if not options.page:
        _run(chosen, asked, known, work=options.work, file=options.out / runs.FILE)
        for key in sorted(known.keys() - needed - unneeded.keys()):
            runs.append(options.work / UNNEEDED, known[key])
        runs.write(options.out / runs.FILE, [known[key] for key in sorted(known.keys() & needed)])
    shown = [known[key] for key in known.keys() & needed]
    published = options.out.resolve() == cells.HERE
    about = (ABOUT, MEASURED) if published else (ABOUT,)
    earlier = json.loads(EARLIER.read_text(encoding="utf-8"))
    of_claims = [findings.finding(chosen, claim, known) for claim in all_claims]
    of_lines = [findings.finding(chosen, line, known) for line in lines]
    if not published:  # reasons are of the project's own figures
        of_claims = [one if one.claim.computed else replace(one, why=None) for one in of_claims]
    content: dict[str, Any] = {
        "preset": chosen.name,
        "about": "\n\n".join(file.read_text(encoding="utf-8").strip() for file in about),
        # Two seeds of the small preset against five would show changes that are none.
        "earlier": findings.verdicts(all_claims, earlier) if chosen.name == "full" else None,
        "findings": findings.with_earlier(of_claims, earlier) if published else [one.to_dict() for one in of_claims],
        "picture": [one.to_dict() for one in of_lines]
        if not published or all(one.whole for one in of_lines)
        else earlier["picture"],
        "runs": {"planned": len(needed), "measured": sum(one.error is None for one in shown)},
        "core_hours": round(sum(one.seconds for one in shown) / 3600, 1),
    }
    content["failures"] = sorted(
        {failure for part in ("findings", "picture") for one in content[part] for failure in one["failures"]}
    )
    page.write(options.out, content)
    _say(f"{options.out / page.PAGE}")
    return len(content["failures"])


def _run(
    chosen: cells.Preset,
    asked: list[claims.Claim],
    known: dict[str, runs.Result],
    *,
    work: Path,
    file: Path,
) -> None:
    wanted = cells.in_order(chosen, asked)
    absent = {cell.data for cell in wanted if not data_sets.is_there(cell.data)}
    if absent:
        _say(f"left out: {', '.join(sorted(absent))}, {data_sets.ABSENT.format(data_sets.data_folder())}")
    data_sets.write_files(work)
    left = execution.missing(chosen, [cell for cell in wanted if cell.data not in absent], known)
    if left:
        execution.check_models(chosen)
    _say(f"{len(wanted)} runs in all; {execution.forecast(len(left), list(known.values()))}")
    for done, one in enumerate(execution.run_all(chosen, left, work), start=1):
        runs.append(file, one)
        known[one.key] = one
        figure = one.figures.get("utility_encoder.accuracy", one.figures.get("accuracy"))
        outcome = f"failed: {one.error}" if one.error else f"accuracy {figure}, {one.seconds:.0f} s"
        rest = execution.forecast(len(left) - done, list(known.values()))
        overrides = " ".join(_distinct_overrides(chosen, one))
        _say(f"[{done}/{len(left)}] {one.data}, seed {one.seed}, {overrides}: {outcome}; {rest}")


def _on_this_machine(chosen: cells.Preset) -> cells.Preset:
    """Return the preset; if any of its data sets are missing, the demo's messages replace them all."""
    if chosen.data is None or all(map(data_sets.is_there, chosen.data)):
        return chosen
    _say(
        f"the demo's messages in place of {', '.join(chosen.data)}, {data_sets.ABSENT.format(data_sets.data_folder())}"
    )
    return replace(chosen, data=(data_sets.DEMO,))


def _distinct_overrides(chosen: cells.Preset, one: runs.Result) -> list[str]:
    """Return a run's overrides, except for its seed and the overrides that all runs of its data set have."""
    common = {*chosen.base, *chosen.of_data[one.data], f"experiment_seed={one.seed}"}
    return [override for override in one.overrides if override not in common]


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
