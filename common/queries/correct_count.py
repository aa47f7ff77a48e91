"""The number of records that a released classifier classifies correctly."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from common.privacy.mechanisms import SUMMED
from common.privacy.sensitivity import Sensitivity
from common.queries.arrays import check_entries, check_shape, shape_of, wrong
from common.queries.page import Query, Spec
from common.validate import integers_in


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectCountSpec(Spec):
    """Number of records that a released classifier classifies correctly, and of all records (federated evaluation).

    The classifier is public, so a record adds 1 to the number of records and, if the classifier labels it correctly, 1
    to the number of correct records: l1 = 2, l2 = sqrt(2). The number of records is private too, and is therefore
    counted with noise.

    Attributes:
        max_records: m, maximum number of records per privacy unit.
    """

    kind: ClassVar[str] = "correct count"
    mechanisms: ClassVar[tuple[str, ...]] = SUMMED
    grid: ClassVar[int] = 1
    largest: ClassVar[int] = 1
    max_records: int = 1

    def __post_init__(self) -> None:
        integers_in(1, 2**20, max_records=self.max_records)

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of the summed answer, in grid units."""
        return Sensitivity.of((1, 1), self.max_records)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CorrectCount(Query):
    """The query for a correct count, with a linear classifier over the agreed encoder's vectors.

    Attributes:
        spec: The planned specification.
        weights: (labels, dim) float32.
        intercepts: (labels,) float32. The prediction is the label with the highest weights . x + intercept; ties
            go to the lower index.
    """

    dtypes: ClassVar[Mapping[str, str]] = {"weights": "<f4", "intercepts": "<f4"}
    spec: CorrectCountSpec
    weights: NDArray[np.float32]
    intercepts: NDArray[np.float32]

    def __post_init__(self) -> None:
        if self.weights.ndim != 2 or self.weights.dtype != np.float32 or 0 in self.weights.shape:
            raise wrong(self.spec.kind, "weights", "a non-empty (labels, dim) float32 array", shape_of(self.weights))
        check_shape(self.spec.kind, "intercepts", self.intercepts, np.float32, (len(self.weights),))
        check_entries(self.spec.kind, weights=self.weights, intercepts=self.intercepts)

    def check(self, labels: int, dimensions: int) -> None:
        """Check that the classifier is for the plan's labels and the agreed encoder, as `Query.check` requires."""
        if self.weights.shape != (labels, dimensions):
            raise wrong(self.spec.kind, "weights", f"{labels} labels, {dimensions} dimensions", self.weights.shape)

    @property
    def length(self) -> int:
        """Number of coordinates in an answer: two, for the correctly classified records and for all records."""
        return 2
