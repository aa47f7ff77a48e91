"""Change of a run's texts, which is the evidence for attacks on methods that show no records to a model.

The private answers of a run influence only its later texts. The first round's texts show how its language models write
without this influence, so an attacker compares the later texts with them. A method with one round has no texts without
this influence; the attacker then uses other real texts from the same source, which no party had.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.domain import Record
from server.domain import Candidate

DEFINITION = (
    "Change: from the texts of the first round to those of the later ones, by label; from held-out real texts to all "
    "released ones if these are of one round."
)
"""Definition of the change, shown in reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledVectors:
    """Embedded texts with their labels.

    Attributes:
        vectors: (n, d) vectors of norm 1.
        labels: (n,) label of each text.
    """

    vectors: NDArray[np.float32]
    labels: NDArray[np.str_]

    def of(self, label: str) -> NDArray[np.float32]:
        """Return the vectors of the texts with this label, (m, d)."""
        vectors: NDArray[np.float32] = self.vectors[self.labels == label]
        return vectors


def before_and_after(
    candidates: Sequence[Candidate],
    vectors: NDArray[np.float32],
    held_out: Sequence[Record],
    held_out_vectors: NDArray[np.float32],
) -> tuple[LabelledVectors, LabelledVectors]:
    """Return the reference texts, and the texts that the private answers may have influenced.

    The reference texts are those of the first round, and the influenced texts are those of all later rounds. If all
    texts are from one round, any of them may have been influenced, and the held-out texts are the reference.
    """
    labels = np.array([candidate.label for candidate in candidates])
    rounds = np.array([candidate.round for candidate in candidates])
    first = rounds == rounds.min()
    if first.all():
        real = LabelledVectors(vectors=held_out_vectors, labels=np.array([record.label for record in held_out]))
        return real, LabelledVectors(vectors=vectors, labels=labels)
    before, after = (LabelledVectors(vectors=vectors[rows], labels=labels[rows]) for rows in (first, ~first))
    return before, after
