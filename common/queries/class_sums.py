"""For each label, the sum of the records' coordinates in a public subspace, for `class_sums`."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from common.domain import MOST_LABELS
from common.privacy.mechanisms import SUMMED
from common.privacy.sensitivity import Sensitivity
from common.queries.arrays import check_shape, orthogonal_rows, unit_rows, within_unit_ball, wrong
from common.queries.page import Query, Spec
from common.validate import integers_in

SMALLEST_RADIUS, LARGEST_RADIUS = 1e-3, 4.0
MOST_DIRECTIONS = 2**12
"""Maximum number of directions of a subspace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSumsSpec(Spec):
    """Sum of the coordinates of each label's records along k public directions, and the number of these records.

    With public orthonormal directions V, a public centre m_c for each label c and a public radius R, a record x of
    label c has the k coordinates

        y = V (x - m_c) / R,      shortened to norm 1 if it is longer,

    and adds trunc(B y), rounded toward zero, and A to the k + 1 coordinates of its own label. It adds nothing to other
    labels. As V, m and R are public, this depends on the record alone. Shortening leaves `|B y| <= B`, and rounding
    toward zero increases no absolute value, so that the k integers z have `|z|^2 <= B^2`. Hence, on the grid,

        l2^2 = B^2 + A^2,      l1 = floor(sqrt(k) B) + A,

    where l1 follows from `|z|_1 <= sqrt(k) |z|_2` (Cauchy and Schwarz), since `|z|_1` is an integer. Rounding to the
    nearest integer would break the bound on `|z|`: if k coordinates of 1/2 are rounded up, the result has norm sqrt(k).

    Floating point is inexact in the last bits, and the proof does not depend on them: the party compares the sum of
    squares of the integers themselves with B^2, and lowers the integers if the sum is larger
    (`client/contributions/class_sums.py`).

    The bounds hold for any V, m and R, since the result is shortened: they follow from this specification, which the
    plan fixes. The arrays may be sent later; the ledger stores their digest. The proof is for one record; m records of
    a user add up to at most m times as much (`closed_set`), which m equal records reach.

    A record with several labels adds in this way to the blocks of up to s of its labels. Blocks share no coordinate, so
    both bounds grow s times, and l2 itself sqrt(s) times. Its x may differ from block to block, for instance if labels
    are headings and x is the vector of a section: the bound on each block holds for any x.

    Attributes:
        labels: C, number of labels of the plan; the answer has C (k + 1) coordinates, label by label: the sums along
            the directions, then the count.
        directions: k, number of directions.
        count: A, grid units that a record adds to the count of its label; as a fraction of the radius, A / B.
        grid: B, grid units in the radius.
        max_records: m, maximum number of records per privacy unit.
        labels_per_record: s, maximum number of labels under which one record counts.
    """

    kind: ClassVar[str] = "class sums"
    mechanisms: ClassVar[tuple[str, ...]] = SUMMED
    labels: int
    directions: int
    count: int
    grid: int = 1024
    max_records: int = 1
    labels_per_record: int = 1

    def __post_init__(self) -> None:
        integers_in(1, 2**20, labels=self.labels, grid=self.grid, max_records=self.max_records)
        integers_in(1, MOST_DIRECTIONS, directions=self.directions)
        integers_in(1, self.grid, count=self.count)
        integers_in(1, MOST_LABELS, labels_per_record=self.labels_per_record)

    @property
    def sums(self) -> int:
        """C (k + 1), number of coordinates of the class sums in an answer."""
        return self.labels * (self.directions + 1)

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of the summed answer, in grid units."""
        blocks = self.labels_per_record
        return Sensitivity(
            l1=(math.isqrt(self.directions * self.grid**2) + self.count) * blocks * self.max_records,
            l2_squared=(self.grid**2 + self.count**2) * blocks * self.max_records**2,
            touched=(self.directions + 1) * blocks * self.max_records,
        )

    @property
    def largest(self) -> int:
        """Largest value that one record can add to a coordinate.

        The bound is tight: a record can attain it if its offset from its label's centre lies along a single direction
        and is at least as long as the radius.
        """
        return self.grid


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassSums(Query):
    """The query for class sums, with its public subspace.

    Attributes:
        spec: The planned specification.
        basis: (directions, dim) float32, orthonormal rows.
        centres: (labels, dim) float32, of norm at most 1, subtracted from the records of each label.
        radius: (1,) float32; a record's coordinates are shortened to this norm if their norm is larger.
    """

    dtypes: ClassVar[Mapping[str, str]] = {"basis": "<f4", "centres": "<f4", "radius": "<f4"}
    spec: ClassSumsSpec
    basis: NDArray[np.float32]
    centres: NDArray[np.float32]
    radius: NDArray[np.float32]

    def __post_init__(self) -> None:
        kind = self.spec.kind
        unit_rows(kind, basis=self.basis)
        if len(self.basis) != self.spec.directions:
            raise wrong(kind, "basis", f"{self.spec.directions} directions", len(self.basis))
        check_shape(kind, "centres", self.centres, np.float32, (self.spec.labels, self.basis.shape[1]))
        within_unit_ball(kind, centres=self.centres)
        check_shape(kind, "radius", self.radius, np.float32, (1,))
        # NaN and infinity fail this comparison too.
        if not SMALLEST_RADIUS <= self.radius[0] <= LARGEST_RADIUS:
            raise wrong(kind, "radius", f"in [{SMALLEST_RADIUS:g}, {LARGEST_RADIUS:g}]", f"{self.radius[0]:g}")

    def check(self, labels: int, dimensions: int) -> None:
        """Check that the subspace is for the agreed encoder and its basis orthonormal, as `Query.check` requires.

        The basis is checked for orthogonality here, and not as soon as the arrays are read: with thousands of rows that
        takes a party many seconds, which no coordinator may request without a plan.
        """
        del labels
        if self.basis.shape[1] != dimensions:
            raise wrong(self.spec.kind, "basis", f"{dimensions} dimensions", self.basis.shape[1])
        orthogonal_rows(self.spec.kind, basis=self.basis)

    @property
    def length(self) -> int:
        """Number of coordinates in an answer: for each label the sums along the directions, then the count."""
        return self.spec.sums
