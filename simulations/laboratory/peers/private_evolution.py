"""The private-evolution library (microsoft/DPSDA, package `pe`), compared with a finished Aug-PE run of ours.

    PYTHONPATH=.:DPSDA python -m simulations.laboratory.peers.private_evolution RUN OUT.json [--draws 200] [--no-texts]

Through its own interfaces, the library gets the same input as our run: the private records, the encoder, the language
models with our prompts, N, T, L, epsilon and delta. It is not installed with this project; README.md describes how it
was run.

1. Votes: on one population, the library's histogram from each of its search backends, and our parties' votes without
   noise.
2. Noise: the standard deviations to which both programs calibrate the noise for the same epsilon, delta and T.
3. Selection: repeated draws of noise and survivors from that population by both programs, without a language model.
4. Texts: a whole run of the library, measured in the same way as ours.

Votes without noise, and all values computed from them, may only be used in a simulation.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulations.laboratory.peers.library import SEARCHES, Library
from simulations.laboratory.peers.our_run import Counts, OurRun, load_finished_run, our_choice, our_noise, our_votes


def draw_arrays(
    run: OurRun, votes: Counts, draws: int, choose: Callable[[int], list[int]]
) -> dict[str, NDArray[np.float64]]:
    """Return arrays with one value per draw: number of survivors, their fraction of the votes, their accuracy."""
    rows = []
    for draw in range(draws):
        chosen = choose(draw)
        accuracy = run.accuracy([run.candidates[at] for at in chosen])
        rows.append((len(chosen), votes[sorted(set(chosen))].sum() / votes.sum(), accuracy))
    return dict(zip(("survivors", "votes", "accuracy"), np.array(rows).T, strict=True))


def difference(first: NDArray[np.float64], second: NDArray[np.float64]) -> dict[str, float]:
    """Return both means, the second minus the first, and the half-width of this difference's 95 % interval."""
    half = 1.96 * np.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))
    return {
        "ours": float(first.mean()),
        "library": float(second.mean()),
        "difference": float(second.mean() - first.mean()),
        "interval": float(half),
    }


def compare_with_library(run: OurRun, *, draws: int, texts: bool) -> dict[str, Any]:
    """Compare the library with the run, in the four steps of the module; return figures that can be stored as JSON."""
    library, votes = Library(run), our_votes(run, run.candidates)
    figures: dict[str, Any] = {"records": len(run.private), "population": len(votes), "votes": float(votes.sum())}
    figures["votes elsewhere"] = {
        f"{backend}, {mode}": float(np.abs(library.votes(backend, mode) - votes).sum() / 2)
        for backend, mode in SEARCHES
    }
    figures["noise"] = {"ours": our_noise(run), "library": library.noise()}
    if draws:
        mechanism = library.gaussian()
        ours = draw_arrays(run, votes, draws, partial(our_choice, run, votes))
        theirs = draw_arrays(run, votes, draws, lambda _: library.choice(mechanism, votes))
        figures["selection"] = {name: difference(ours[name], theirs[name]) for name in ours}
    figures["ours"] = {"accuracy": run.accuracy(run.texts), "texts": len(run.texts)}
    if texts:
        made, kept = library.texts()
        figures["library"] = {
            "accuracy": run.accuracy(made),
            "texts": len(made),
            "accuracy of survivors": run.accuracy(kept),
            "survivors": len(kept),
            "requested": library.requested,
            "unanswered": library.unanswered,
            "votes": library.counted,
            "votes elsewhere": library.elsewhere,
        }
    return figures


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare the library with a finished run, and write the figures to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder of a finished simulation with method=aug_pe")
    parser.add_argument("out", type=Path, help="file for the figures")
    parser.add_argument("--draws", type=int, default=200, help="draws of noise; 0: none")
    parser.add_argument("--no-texts", action="store_true", help="no run of the library with language models")
    options = parser.parse_args(arguments)
    figures = compare_with_library(load_finished_run(options.run), draws=options.draws, texts=not options.no_texts)
    options.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
