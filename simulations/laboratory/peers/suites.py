"""The input for other projects' evaluation programs, from a run folder, and our figures on the same texts.

    python -m simulations.laboratory.peers.suites RUN OUT

OUT will contain the synthetic and the held-out texts, in the formats that the programs in README.md read, and no
private records:

    synthetic.csv, real.csv      text,label
    pairs.csv                    source,reference: random pairs, as many as the smaller set has texts
    real.embeddings.npz          the held-out texts' vectors under the run's encoder, as Aug-PE's program keeps them
    ours.json                    our figures of fidelity on the same sets
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from common import rng
from common.errors import DataError
from server.evaluation.figures import Measured, fidelity
from server.evaluation.small_model import by_encoder, score
from server.run_folder import read_candidates
from server.settings.build import build
from server.settings.compose import load
from server.vector_cache import RememberingEncoder
from simulations.laboratory.results.data_sets import write_csv


def write(run: Path, out: Path) -> dict[str, float | None]:
    """Write the files that the module lists into `out`; return our figures, keyed by name.

    Raises:
        DataError: The run has no held-out texts.
    """
    settings = load(run)
    source = build(settings.task)
    task, encoder = source.task(), RememberingEncoder(build(settings.embedding))
    synthetic, real = task.classifier_inputs(read_candidates(run)), task.classifier_inputs(source.held_out())
    if not real:
        raise DataError("task.test", expected="held-out texts to compare with", got="none", where=run)
    out.mkdir(parents=True, exist_ok=True)
    for name, texts in (("synthetic", synthetic), ("real", real)):
        write_csv(out / f"{name}.csv", ("text", "label"), ((text.text, text.label) for text in texts))
    generator = rng.experiment(settings.experiment_seed, "pairs")
    columns = [[text.text for text in texts] for texts in (synthetic, real)]
    both = min(map(len, columns))
    drawn = [[texts[at] for at in generator.permutation(len(texts))[:both]] for texts in columns]
    write_csv(out / "pairs.csv", ("source", "reference"), zip(*drawn, strict=True))
    labels = np.array([record.label for record in real])
    np.savez(out / "real.embeddings.npz", embeddings=encoder.encode(columns[1]), additional_info=labels)

    evaluation: Any = build(settings.evaluation)
    measured = Measured(
        candidates=synthetic,
        test=real,
        evaluation=evaluation,
        encoder=encoder.encoder,
        experiment_seed=settings.experiment_seed,
        embed=encoder.encode,
        released=columns[0],
        public=list,
    )
    groups = fidelity(measured, real, lambda: measured.test_vectors)
    figures = {name: values["value"] for name, values in groups.items() if isinstance(values, dict)}
    figures["accuracy"] = score(synthetic, real, evaluation=by_encoder(evaluation), encoder=encoder.encoder)["accuracy"]
    (out / "ours.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return figures


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the files for the run folder that is named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder of a finished run")
    parser.add_argument("out", type=Path, help="folder for the files, created if missing")
    options = parser.parse_args(arguments)
    write(options.run, options.out)


if __name__ == "__main__":
    main()
