"""Quality of encoders, measured on labelled texts, and their speed for texts of different lengths.

    OMP_NUM_THREADS=1 python -m simulations.laboratory.benchmarks.encoders TRAIN.csv TEST.csv \
        [--encoder hashed_ngrams --encoder minilm --encoder torch:minilm]

The files have the columns `text` and `label`. An encoder is `hashed_ngrams`, which has no weights, a name of the
catalogue (`make models`), or a folder; with the prefix `torch:`, it is run by sentence-transformers even if numpy
suffices. The table shows three figures: the fraction of test texts for which the nearest training text has the same
label, which matters for nearest-neighbour votes; the accuracy of a logistic regression on the vectors; and the texts
encoded per CPU second, for lengths near the 10th, 50th and 90th percentile.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from common.errors import CaucusError
from common.labelled_files import read_records
from common.models.checkpoints import model_folder
from common.models.encoder import Encoder
from common.models.sentence_transformer import TorchEncoder
from server.metrics.accuracy import accuracy, predict
from simulations.laboratory.benchmarks.timing import timed

_NGRAMS, _TORCH = "hashed_ngrams", "torch:"
_PERCENTILES = (10, 50, 90)
_TIMED = 64  # texts of about each length


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each encoder."""
    parser = argparse.ArgumentParser(prog="bench_encoders", description=__doc__.split("\n", 1)[0])
    parser.add_argument("train", help="labelled texts, .csv or .jsonl")
    parser.add_argument("test", help="further ones")
    parser.add_argument(
        "--encoder", action="append", help=f"{_NGRAMS}, a name of the catalogue, or a folder; {_TORCH}NAME"
    )
    options = parser.parse_args(arguments)
    try:
        names = options.encoder or [_NGRAMS, "minilm"]
        _print_table(options.train, options.test, {name: _encoder(name) for name in names})
    except CaucusError as error:
        sys.exit(f"error: {error}")


def nearest_agreement(
    train: NDArray[np.float32], train_labels: Sequence[str], test: NDArray[np.float32], test_labels: Sequence[str]
) -> float:
    """Return the fraction of test vectors whose nearest training vector has the same label. Rows have unit norm."""
    nearest = (test @ train.T).argmax(axis=1)
    return float(np.mean(np.asarray(train_labels)[nearest] == np.asarray(test_labels)))


def _encoder(name: str) -> Encoder:
    if name == _NGRAMS:
        return Encoder.hashed_ngrams()
    if name.startswith(_TORCH):
        folder = model_folder(name.removeprefix(_TORCH), what="encoder")
        return Encoder(TorchEncoder.load(folder, device="cpu", prompt="", form=None))
    return Encoder.pretrained(name)


def _print_table(train_file: str, test_file: str, encoders: Mapping[str, Encoder]) -> None:
    train, test = read_records(train_file), read_records(test_file)
    texts, test_texts = [record.text for record in train], [record.text for record in test]
    labels, test_labels = [record.label for record in train], [record.label for record in test]
    by_length = sorted(texts, key=lambda text: len(text.split()))
    of_length = []
    for percent in _PERCENTILES:
        start = max(0, min(len(texts) * percent // 100 - _TIMED // 2, len(texts) - _TIMED))
        of_length.append(by_length[start : start + _TIMED])
    lengths = [f"{len(chosen[len(chosen) // 2].split())} words" for chosen in of_length]
    sys.stdout.write(f"{len(texts)} training and {len(test_texts)} test texts; texts a CPU second by length\n")
    head = "".join(f"{name:>12}" for name in ("dimensions", "nearest", "regression", *lengths))
    sys.stdout.write(f"{'encoder':16}{head}\n")
    for name, encoder in encoders.items():
        vectors, test_vectors = encoder.encode(texts), encoder.encode(test_texts)
        nearest = nearest_agreement(vectors, labels, test_vectors, test_labels)
        known = _CachedVectors(dict(zip([*texts, *test_texts], [*vectors, *test_vectors], strict=True)))
        right = accuracy(predict(texts, labels, test_texts, encoder=known)[0], test_labels)
        speeds = [1000 * len(chosen) / timed(encoder.encode, chosen)[1] for chosen in of_length]
        sys.stdout.write(
            f"{name:16}{encoder.dimensions:12}{nearest:12.3f}{right:12.3f}"
            f"{''.join(f'{speed:12.0f}' for speed in speeds)}\n"
        )


class _CachedVectors:
    """An encoder that returns vectors computed before."""

    def __init__(self, vectors: Mapping[str, NDArray[np.float32]]) -> None:
        self._vectors = vectors

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([self._vectors[text] for text in texts])


if __name__ == "__main__":
    main()
