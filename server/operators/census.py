"""A census: noised sums of the records' coordinates in a public subspace, and what they say about each label.

    candidates' vectors ── public ──▶ Subspace ── asked once (`common/queries/class_sums.py`) ──▶ Census ──▶ Estimates

The subspace is a function of the candidates alone. All that follows is a function of it and of numbers that carry their
noise: nothing here can cost privacy, however often it is used.

Let s be the noised sum of label c along a direction, in radii, with noise of standard deviation sigma, and n its noised
number of records. Then s / n is the mean place of the label's records, off by sigma / n. It is shrunk towards 0, the
mean of the candidates themselves, as empirical Bayes has it:

    mean = tau^2 / (tau^2 + (sigma / n)^2) s / n,      tau^2 = max(0, sum of s^2 - sigma^2) / (k sum of n^2),

where both sums are over all labels (the former over all directions too), so that a census in which nothing rises above
the noise moves nothing. The numbers of records are shrunk towards equal ones in the same way.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.errors import ConfigError
from common.queries.class_sums import LARGEST_RADIUS, SMALLEST_RADIUS

Floats = NDArray[np.float64]
Labels = NDArray[np.integer]
Vectors = NDArray[np.floating]

_NEGLIGIBLE = 1e-6
"""A singular value below this share of the largest is rounding, not a direction."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subspace:
    """Where a census is taken.

    Attributes:
        basis: (k, dim) float32, orthonormal directions.
        centres: (C, dim) float32, the point from which the records of each label are measured.
        radius: Length of the coordinates beyond which they are shortened.
    """

    basis: NDArray[np.float32]
    centres: NDArray[np.float32]
    radius: float

    def coordinates(self, vectors: Vectors, labels: Labels) -> Floats:
        """(n, k) coordinates from the centres of their labels, in radii, shortened to norm 1 as a record's are."""
        places = (vectors.astype(np.float64) - self.centres[labels]) @ self.basis.T / self.radius
        norms = np.linalg.norm(places, axis=1, keepdims=True)
        return np.asarray(places / np.maximum(1.0, norms))

    def absolute(self, vectors: Vectors) -> Floats:
        """(n, k) coordinates from the origin, in radii."""
        return np.asarray(vectors.astype(np.float64) @ self.basis.T / self.radius)


def subspace(vectors: Vectors, labels: Labels, label_count: int, *, directions: int, quantile: float) -> Subspace:
    """The subspace of a round's candidates.

    Args:
        vectors: (n, dim) candidates, at least one.
        labels: (n,) in [0, label_count).
        label_count: C.
        directions: k.
        quantile: The share of the candidates that the radius reaches.

    Raises:
        ConfigError: There are more directions than dimensions.
    """
    if directions > vectors.shape[1]:
        raise ConfigError(
            "method.directions", expected=f"at most {vectors.shape[1]}, the encoder's dimensions", got=directions
        )
    rows, means = basis(vectors, labels, label_count, directions), centres(vectors, labels, label_count)
    lengths = np.linalg.norm((vectors - means[labels]) @ rows.T, axis=1)
    radius = np.float32(np.clip(np.quantile(lengths, quantile), 2 * SMALLEST_RADIUS, LARGEST_RADIUS))
    return Subspace(basis=rows.astype(np.float32), centres=means.astype(np.float32), radius=float(radius))


def centres(vectors: Vectors, labels: Labels, label_count: int) -> Floats:
    """(C, dim) mean of each label's candidates; that of all candidates for a label that has none."""
    sums = np.zeros((label_count, vectors.shape[1]))
    np.add.at(sums, labels, vectors)
    sizes = np.bincount(labels, minlength=label_count)[:, None]
    return np.where(sizes > 0, sums / np.maximum(1, sizes), vectors.mean(axis=0, dtype=np.float64))


def basis(vectors: Vectors, labels: Labels, label_count: int, directions: int) -> Floats:
    """(k, dim) orthonormal directions: those in which the labels' means differ, then those within labels.

    The differences of C labels span at most C - 1 directions; the rest are the principal directions in which candidates
    differ from their label's mean. If candidates are too few or too alike for that, directions orthogonal to all these
    fill up the number, which the plan has fixed: a record may differ where no candidate does. Of each direction the
    largest entry is positive, so that the same candidates have the same basis.
    """
    means = centres(vectors, labels, label_count)
    between = _principal(means - means.mean(axis=0))
    inside = vectors - means[labels]
    within = _principal(inside - inside @ between.T @ between)
    rows = np.concatenate([between, within])[:directions]
    if len(rows) < directions:
        rest = np.linalg.svd(np.concatenate([rows, np.zeros_like(rows[:1])]), full_matrices=True)[2][len(rows) :]
        rows = np.concatenate([rows, _signed(rest[: directions - len(rows)])])
    return rows


def _principal(rows: Floats) -> Floats:
    """Orthonormal directions that span these rows, by how much of them they hold."""
    _, lengths, directions = np.linalg.svd(rows, full_matrices=False)
    return _signed(directions[lengths > max(_NEGLIGIBLE * lengths.max(initial=0), 1e-9)])


def _signed(directions: Floats) -> Floats:
    largest = np.abs(directions).argmax(axis=1, keepdims=True)
    return np.asarray(directions * np.sign(np.take_along_axis(directions, largest, axis=1)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Census:
    """The released numbers, with all that is needed to use them again (`server/operators/census_file.py`).

    Attributes:
        labels: Names of the labels, in the order of the plan.
        subspace: Where it was taken.
        sums: (C, k) noised sums of the records' coordinates, in radii.
        counts: (C,) noised numbers of records; they may be negative.
        noise: Standard deviation of the noise of a sum, in radii.
        count_noise: Standard deviation of the noise of a count, in records.
    """

    labels: tuple[str, ...]
    subspace: Subspace
    sums: Floats
    counts: Floats
    noise: float
    count_noise: float

    @classmethod
    def of(
        cls, answer: NDArray[np.floating], labels: Sequence[str], subspace: Subspace, *, count: float, noise: float
    ) -> "Census":
        """Read an answer to the query.

        Args:
            answer: (C (k + 1),) in radii, label by label: the sums, then the count.
            labels: Names of the labels.
            subspace: Where it was taken.
            count: What a record adds to its label's count, in radii.
            noise: Standard deviation of the noise of each number, in radii.
        """
        rows = answer.astype(np.float64).reshape(len(labels), len(subspace.basis) + 1)
        return cls(
            labels=tuple(labels),
            subspace=subspace,
            sums=rows[:, :-1],
            counts=rows[:, -1] / count,
            noise=noise,
            count_noise=noise / count,
        )

    @property
    def signal_to_noise(self) -> float | None:
        """Size of the sums without the noise in them, in units of the noise: root mean squares; None without noise."""
        if self.noise == 0:
            return None
        return float(np.sqrt(max(0.0, np.mean(self.sums**2) / self.noise**2 - 1)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimates:
    """What a census says about the records.

    Attributes:
        records: Number of records, at least 1.
        shares: (C,) share of each label, at least 0, sum 1.
        share_noise: Standard deviation of the noise that is left in a share.
        means: (C, k) mean coordinates of each label's records, in radii from its centre.
        mean_noise: (C,) standard deviation of the noise that is left in a mean, in each direction.
        kept: (C,) share of each measured mean that shrinkage leaves, 0 to 1.
    """

    records: float
    shares: Floats
    share_noise: float
    means: Floats
    mean_noise: Floats
    kept: Floats


def estimates(census: Census, *, shrinkage: bool = True) -> Estimates:
    """Shares and means, shrunk by what is known of their noise; as they came if `shrinkage` is off."""
    labels, directions = census.sums.shape
    records = max(1.0, float(census.counts.sum()))
    even = records / labels
    kept_share = 1.0
    if shrinkage:
        variance = float(np.mean((census.counts - census.counts.mean()) ** 2)) * labels / max(1, labels - 1)
        signal = max(0.0, variance - census.count_noise**2)
        kept_share = signal / (signal + census.count_noise**2) if signal else 0.0
    positive = np.maximum(0.0, even + kept_share * (census.counts - census.counts.mean()))
    shares = positive / positive.sum() if positive.any() else np.full(labels, 1 / labels)
    # A label of which hardly a record was counted has at least one: its mean must not grow beyond all bounds.
    sizes = np.maximum(1.0, records * shares)
    errors = census.noise / sizes
    kept = np.ones(labels)
    if shrinkage and census.noise > 0:
        spread = max(0.0, float(np.sum(census.sums**2 - census.noise**2))) / (directions * float(np.sum(sizes**2)))
        kept = spread / (spread + errors**2)
    means = kept[:, None] * census.sums / sizes[:, None]
    # No record's coordinates are longer than 1, nor is their mean.
    means /= np.maximum(1.0, np.linalg.norm(means, axis=1, keepdims=True))
    return Estimates(
        records=records,
        shares=shares,
        share_noise=kept_share * census.count_noise / records,
        means=means,
        mean_noise=kept * errors,
        kept=kept,
    )
