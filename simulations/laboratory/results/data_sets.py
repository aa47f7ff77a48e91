"""Folders of the data sets, and files derived from the data sets."""

import csv
import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from common.labelled_files import read_records
from common.models import catalogue

DATA = "CAUCUS_DATA"
"""Environment variable that contains the folder of the data sets."""
DEMO = "demo_messages"
"""Data set that is included in the program, of texts that small real models can write: a note takes them minutes."""
ABSENT = (
    "which {} does not hold. Expected there: NAME/train.csv and NAME/test.csv with the columns text,label. "
    f"Set {DATA} to their folder; simulations/README.md says where the sets are published"
)
"""End of an error message about missing data sets, with {} for the folder of the data sets."""
BANKING67 = "banking67.csv"
ENGLISH = "english.txt"
COMMONEST = 300
"""Number of the most frequent English words that the vocabulary omits, as they occur in nearly every text."""
TARGET_PART = 4
"""One in this number of records belongs to the recipient, who does not use the labels, and not to a hospital."""


def data_folder() -> Path:
    """Return the folder of the data sets: $CAUCUS_DATA, or shared/data next to the project."""
    return Path(os.environ.get(DATA, Path(__file__).parents[4] / "shared" / "data")).resolve()


def is_there(data: str) -> bool:
    """Return whether the training and test files of the data set are on this machine."""
    return data == DEMO or all((data_folder() / data / f"{part}.csv").is_file() for part in ("train", "test"))


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a CSV file with this header, encoded in UTF-8."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def write_files(work: Path) -> None:
    """Write public texts, a public vocabulary, and banking10's records, split between hospitals and a recipient."""
    _write_public_texts(work)
    _write_vocabulary(work)
    _write_target(work)


def _write_public_texts(work: Path) -> None:
    """Write the public texts of banking10, with their topics: banking77's messages of the other 67 classes."""
    target = work / BANKING67
    if target.exists() or not (is_there("banking10") and is_there("banking77")):
        return
    task_labels = {record.label for record in read_records(data_folder() / "banking10" / "train.csv")}
    others = read_records(data_folder() / "banking77" / "train.csv")
    lines = [
        (record.text, record.label.strip("?").replace("_", " ").lower())
        for record in others
        if record.label not in task_labels
    ]
    write_csv(target, ("text", "topic"), lines)


def _write_vocabulary(work: Path) -> None:
    """Write English words, the more frequent ones first, omitting the `COMMONEST` most frequent words.

    Without the list, these are the language model's tokens that follow a space, ordered by their numbers.
    """
    source, tokenizer = data_folder() / "vocab_english" / "words.tsv", catalogue.root() / "smollm2" / "tokenizer.json"
    if source.is_file():
        words = [line.partition("\t")[0] for line in source.read_text(encoding="utf-8").splitlines()[1:]]
    elif tokenizer.is_file():
        tokens = json.loads(tokenizer.read_text(encoding="utf-8"))["model"]["vocab"]
        words = [token[1:] for token in sorted(tokens, key=tokens.get) if re.fullmatch("Ġ[a-z]{3,}", token)]
    else:
        return
    (work / ENGLISH).write_text("\n".join(words[COMMONEST:]) + "\n", encoding="utf-8")


def _write_target(work: Path) -> None:
    if not is_there("banking10"):
        return
    records = read_records(data_folder() / "banking10" / "train.csv")
    parts = {
        "banking10_target.csv": [record for number, record in enumerate(records) if number % TARGET_PART == 0],
        "banking10_private.csv": [record for number, record in enumerate(records) if number % TARGET_PART],
    }
    for name, part in parts.items():
        write_csv(work / name, ("text", "label"), ((record.text, record.label) for record in part))
