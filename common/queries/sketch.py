"""Sketches of kernel densities by random Fourier features (Rahimi and Recht 2007; Wagner et al. 2023).

With frequencies drawn from a standard normal distribution, divided by the bandwidth h, and phases uniform on [0, 2 pi),
the expected product of the features of two points yields their Gaussian kernel:

    single:  E f_i(x) f_i(y) = exp(-|x - y|^2 / h^2),     paired:  E 2 f_i(x) f_i(y) = exp(-|x - y|^2 / h^2).

So a sketch s, the sum of B times the features of n points, yields their mean kernel with y as the mean over i of
s_i f_i(y) / (n B), or twice that for paired features.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from common.errors import ConfigError
from common.privacy.mechanisms import SUMMED
from common.privacy.sensitivity import Sensitivity
from common.queries.arrays import check_entries, check_shape, unit_rows, wrong
from common.queries.page import Query, Spec
from common.queries.terms import check_terms
from common.validate import flags, integers_in


@dataclass(frozen=True, slots=True, kw_only=True)
class SketchSpec(Spec):
    """Sketch of a kernel density of each label's phrases (DP-KPS, sections 2 and A.2; Wagner et al. 2023).

    A record's points are its first k terms of the vocabulary, each as its public vector; or a single point, the vectors
    of its first `prefix` terms side by side, with zero blocks after the last term. A point x has I features:

        single:  sqrt(2) cos(sqrt(2) w_i . x + b_i),            i = 1..I,     each in [-sqrt(2), sqrt(2)]
        paired:  cos(sqrt(2) w_i . x), sin(sqrt(2) w_i . x),    i = 1..I/2,   each pair of norm 1

    with public frequencies w and phases b. The record adds, to the I coordinates of its own label, the mean of its
    points' features times B, rounded toward zero; a record without terms adds nothing. As vectors, frequencies and
    phases are public, this depends on the record alone. A mean keeps the bounds of its terms, and rounding toward zero
    increases no absolute value. So on the grid

        single:  I coordinates of at most s = floor(sqrt(2) B), hence l1 = I s, l2^2 = I s^2
        paired:  l2^2 <= B^2 I / 2, hence l1 <= I B / sqrt(2) by Cauchy and Schwarz.

    Cosines are computed in floating point, with an error of about 1e-15. The bounds are rounded up by more than this
    error can add, and the contribution is also clipped at s for single features, or at B for paired ones. Single
    features with Laplace noise are the paper's pure DP; paired features with Gaussian noise need noise in proportion to
    sqrt(I) instead of I.

    Attributes:
        labels: C, number of labels of the plan; the answer has C I coordinates, label by label.
        features: I, number of features.
        paired: Whether features are paired.
        first: k, number of terms of a record that count.
        prefix: 0 for the mean over single terms; otherwise the number of terms whose vectors side by side form the
            single point.
        grid: B, grid units in 1.
        max_records: m, maximum number of records per privacy unit.
    """

    kind: ClassVar[str] = "density sketch"
    mechanisms: ClassVar[tuple[str, ...]] = SUMMED
    labels: int
    features: int
    paired: bool = True
    first: int = 10
    prefix: int = 0
    grid: int = 64
    max_records: int = 1

    def __post_init__(self) -> None:
        integers_in(1, 2**20, labels=self.labels, max_records=self.max_records)
        integers_in(1, 2**16, features=self.features)
        integers_in(1, 2**10, first=self.first)
        integers_in(0, self.first, prefix=self.prefix)
        integers_in(1, 2**20, grid=self.grid)
        flags(paired=self.paired)
        if self.paired and self.features % 2:
            raise ConfigError("features", expected="an even number of paired ones", got=self.features)

    @property
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of the summed answer, in grid units."""
        if not self.paired:
            return Sensitivity.of((self.largest,) * self.features, self.max_records)
        l2_squared = self.features * self.grid**2 // 2 + 1
        return Sensitivity(
            l1=math.isqrt(self.features * l2_squared) * self.max_records + self.max_records,
            l2_squared=l2_squared * self.max_records**2,
            touched=self.features * self.max_records,
        )

    @property
    def largest(self) -> int:
        """Largest value that one record can add to a coordinate."""
        return self.grid if self.paired else math.isqrt(2 * self.grid**2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sketch(Query):
    """The query for a density sketch, with the terms, their vectors, and the sketch's frequencies.

    Attributes:
        spec: The planned specification.
        terms: As in `common.queries.histograms.Vocabulary`.
        vectors: (terms, dim) float32, unit norm.
        frequencies: (features, blocks * dim) float32, half as many rows for paired features; blocks is `prefix`, or 1.
            The frequencies are already divided by the kernel's bandwidth.
        phases: (features,) float32; (0,) for paired features.
    """

    dtypes: ClassVar[Mapping[str, str]] = {
        "terms": "|u1",
        "vectors": "<f4",
        "frequencies": "<f4",
        "phases": "<f4",
    }
    spec: SketchSpec
    terms: NDArray[np.uint8]
    vectors: NDArray[np.float32]
    frequencies: NDArray[np.float32]
    phases: NDArray[np.float32]

    def __post_init__(self) -> None:
        check_terms(self.spec.kind, self.terms)
        unit_rows(self.spec.kind, vectors=self.vectors)
        terms = int(np.count_nonzero(self.terms == ord("\n")))
        if len(self.vectors) != terms:
            raise wrong(self.spec.kind, "vectors", f"one for each of {terms} terms", len(self.vectors))
        rows = self.spec.features // (2 if self.spec.paired else 1)
        columns = max(1, self.spec.prefix) * self.vectors.shape[1]
        check_shape(self.spec.kind, "frequencies", self.frequencies, np.float32, (rows, columns))
        check_shape(self.spec.kind, "phases", self.phases, np.float32, (0 if self.spec.paired else rows,))
        check_entries(self.spec.kind, frequencies=self.frequencies, phases=self.phases)

    @property
    def length(self) -> int:
        """Number of coordinates in an answer: the features of the first label, then of the next."""
        return self.spec.labels * self.spec.features


_ROOT = math.sqrt(2)


def features(products: NDArray[np.float64], phases: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the features of points, given their inner products with the frequencies.

    Args:
        products: (n, rows) w_i . x.
        phases: (rows,) for single features; (0,) for paired ones.

    Returns:
        (n, rows) sqrt(2) cos(sqrt(2) w_i . x + b_i); or (n, 2 * rows), cosines, then sines, of all sqrt(2) w_i . x.
    """
    angles = _ROOT * products
    if len(phases):
        single: NDArray[np.float64] = _ROOT * np.cos(angles + phases)
        return single
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
