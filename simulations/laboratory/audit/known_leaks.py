r"""Whether the audit for disclosures finds known leaks: methods that show, rewrite or learn from records unprotected.

    OMP_NUM_THREADS=1 TQDM_DISABLE=1 python -m simulations.laboratory.audit.known_leaks [cfpb8] [mts_notes8] ... \
        [--methods rupta ...] [--records 300] [--seeds 3] [--llm smollm2] [--steps 2400]

Each run draws equal numbers of private and of control records at random from a set. No run sees the control records;
the rest of the set is public text. The texts of each method, without noise, are audited by the group of figures
`disclosures` (`simulations/private_evaluation/phantoms.py`). The method "no votes" asks the hospitals nothing, so any
finding about its texts is a false alarm.
"""

import argparse
import logging
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common import rng
from server.documents.metrics import Metrics
from server.settings.compose import composed
from simulations import run
from simulations.laboratory.results.data_sets import whole_set, write_csv
from simulations.private_evaluation import phantoms
from simulations.sweeps.render import markdown_row

SETS = ("banking10", "mts_notes8", "cfpb8", "medquad10")
TUNED = ["method=dp_sgd", "privacy.epsilon=.inf", "federation.parties=1", "client.fine_tuning.micro_batch=16"]
METHODS = {
    "no votes": ["method=fusegen", "method.boosts=0"],
    "private exemplars": ["method=private_exemplars", "method.exemplars=20"],
    "rupta": ["method=rupta", "federation.parties=1"],
    "fine-tuned": [*TUNED, "method.rate=0.1", "method.batch=30", "method.steps={steps}"],
}
"""Overrides of each method; {steps} stands for the number of steps of fine-tuning."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each data set, method and seed."""
    parser = argparse.ArgumentParser(prog="known_leaks", description=__doc__.split("\n", 1)[0])
    parser.add_argument("sets", nargs="*", metavar="SET", default=list(SETS), help=" or ".join(SETS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--records", type=int, default=300, help="private records, and as many control records")
    parser.add_argument("--texts", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--llm", default="builtin", help="builtin, or smollm2")
    parser.add_argument("--steps", type=int, default=2400, help="steps of fine-tuning, of 30 records each")
    chosen = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    sys.stdout.write(markdown_row(["records", "method", *phantoms.NAMES, "found"]).replace("_", " "))
    for name in chosen.sets:
        for method in chosen.methods:
            for seed in range(chosen.seeds):
                group = audited(name, METHODS[method], chosen, seed)
                cells = [_cell(group, feature) for feature in phantoms.NAMES]
                verdict = "yes" if group["found"]["value"] else "no"
                sys.stdout.write(markdown_row([name, method, *cells, verdict]))
                sys.stdout.flush()
    return 0


def audited(name: str, settings: Sequence[str], chosen: argparse.Namespace, seed: int) -> Mapping[str, Any]:
    """Run a method on records of a set; return the group of figures `disclosures`."""
    records = whole_set(name)
    order = rng.experiment(seed, "known leaks", name).permutation(len(records))
    shuffled = [records[place] for place in order]
    private, control = shuffled[: chosen.records], shuffled[chosen.records : 2 * chosen.records]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for part, of_part in (("train", private), ("test", control)):
            write_csv(work / f"{part}.csv", ("text", "label"), ((record.text, record.label) for record in of_part))
        public = [" ".join(record.text.split()) for record in shuffled[2 * chosen.records :]]
        (work / "public.txt").write_text("\n".join(public), "utf-8")
        overrides = [
            "task=csv",
            *(f"task.{part}={work}/{part}.csv" for part in ("train", "test")),
            f"task.public_text={work}/public.txt",
            f"llm={chosen.llm}",
            f"method.samples={chosen.texts}",
            f"experiment_seed={seed}",
            "evaluation.metrics=[disclosures]",
            *(["embedding=minilm"] if chosen.llm != "builtin" else []),
        ]
        run.simulate(composed([*overrides, *(each.format(steps=chosen.steps) for each in settings)]), work / "run")
        group: Mapping[str, Any] = Metrics.load(work / "run").content["disclosures"]
        return group


def _cell(group: Mapping[str, Any], feature: str) -> str:
    """Return a feature's cell: the number of disclosed records, of disclosed control records, and the p-value."""
    training, control = (group[f"{feature}{end}"] for end in ("", "_control"))
    counts = ":".join(str(round(figure["value"] * figure["rows"])) for figure in (training, control))
    return f"{counts} p {group[f'{feature}_p']['value']:.2g}"


if __name__ == "__main__":
    sys.exit(main())
