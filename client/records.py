"""The sole reader of private files, and the only form in which the rest of the party sees private data."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.data.load import read_records
from common.domain import Record
from common.embedding import Encoder
from common.errors import DataError


@dataclass(frozen=True, slots=True)
class Embedded:
    """One party's private records, ready to vote.

    Attributes:
        vectors: (records, dimensions) float32, unit norm.
        labels: (records,) int32, positions in the plan's list of labels.
    """

    vectors: NDArray[np.float32] = field(repr=False)
    labels: NDArray[np.int32] = field(repr=False)


def read(path: Path, labels: Sequence[str]) -> list[Record]:
    """Read a party's own file (CSV or JSON Lines, columns `text,label`).

    Raises:
        DataError: With path and line, and never a word of the text.
    """
    return read_records(path, labels)


def embed(records: Sequence[Record], labels: Sequence[str], encoder: Encoder) -> Embedded:
    """Embed records once for a run; the labels are the public ones of its plan.

    Raises:
        DataError: A record has a label that the plan does not know. The label is private and not named.
    """
    number = {label: position for position, label in enumerate(labels)}
    unknown = sum(record.label not in number for record in records)
    if unknown:
        raise DataError("private records", expected=f"labels among {list(labels)}", got="another label")
    return Embedded(
        vectors=encoder.encode([record.text for record in records]),
        labels=np.array([number[record.label] for record in records], dtype=np.int32),
    )
