"""The sole reader of private files, and the only form in which the rest of the party sees private data."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common.data.load import read_records
from common.domain import Record
from common.embedding import Encoder

log = logging.getLogger("caucus.party")


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

    Records of other labels do not vote. Refusing the plan for them would tell the coordinator, without noise, which
    labels this party holds; leaving them out looks at each record alone, so that no sensitivity grows.
    """
    number = {label: position for position, label in enumerate(labels)}
    voting = [record for record in records if record.label in number]
    if len(voting) < len(records):
        log.warning("some private records have a label that the plan does not know: they do not vote")
    return Embedded(
        vectors=_alone([record.text for record in voting], encoder),
        labels=np.array([number[record.label] for record in voting], dtype=np.int32),
    )


def _alone(texts: Sequence[str], encoder: Encoder) -> NDArray[np.float32]:
    # One at a time: in a batch a transformer's padding lets a record's neighbours move its vector by a hair, and the
    # votes' sensitivity is proved for records that do not touch each other.
    return np.concatenate([encoder.encode([]), *(encoder.encode([text]) for text in texts)])
