"""Noised sums of the records' coordinates in a public subspace, and estimates for each label from these sums.

    candidates' vectors ── public ──▶ Subspace ── asked once (`common/queries/class_sums.py`) ──▶ NoisySums ─▶ Estimates

The subspace is a function only of the candidates and of the labels' descriptions. All later steps are functions of the
subspace and of noised numbers, so nothing here can cost privacy, however often these are used.

Let S be the noised sum for a label, in radii, with noise of standard deviation sigma in each of k directions, and n the
label's noised number of records. Then S / n is the offset of the mean of the label's records from the label's public
centre, with noise sigma / n. A priori each coordinate of that offset is normal with mean 0 and a variance v that is
common to all labels. The measured offset is therefore multiplied by v / (v + e), averaged over the posterior of v, for
which the prior is flat in log v. The error e is (sigma / n)^2 plus, since the records are themselves a sample, about
1/(4 k n), if the coordinates of the n records have a length of half a radius. Sums without any signal above the
noise therefore leave the centres unchanged. The labels' numbers of records are likewise shrunk towards equal numbers.
The estimated mean is the centre plus the shrunk offset, in all dimensions: outside the subspace only the public centre
is known, which is a useful estimate.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from common.domain import is_one_population
from common.queries.class_sums import LARGEST_RADIUS, SMALLEST_RADIUS
from server.documents.class_sums import QuestionnaireNumbers
from server.metrics.linear import LinearClassifier

Floats = NDArray[np.float64]
Labels = NDArray[np.integer]
Vectors = NDArray[np.floating]

_NEGLIGIBLE = 1e-6
"""Fraction of the largest singular value below which a singular value is a rounding error, not a direction."""
_VARIANCES = np.geomspace(1e-3, 1, 25)
"""Values of the prior variance of an offset's coordinate, in squared radii; an offset is at most one radius long."""
_LEAST_SHARE = 0.25
"""Lower bound on a label's number of records, as a fraction of the mean over labels; it keeps the label's mean vector
finite."""
_SPREAD = 0.25
"""Mean squared length of the records' coordinates about their mean, in squared radii."""
_SOFTNESSES = np.geomspace(0.005, 2, 24)
_LEAST_LENGTH = 1e-9
"""Lower bound on the length of an offset, and on a variance; below it, no direction can be measured."""
_TRUSTED = 0.7
"""Fraction of the candidates that are assumed to have the requested label when the softness is chosen."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subspace:
    """Public coordinates in which records are measured.

    Attributes:
        basis: (k, dim) float32, orthonormal directions.
        centres: (C, dim) float32, for each label, the point relative to which its records are measured.
        radius: Maximum length of a record's coordinates; longer coordinates are shortened to this length.
    """

    basis: NDArray[np.float32]
    centres: NDArray[np.float32]
    radius: float


def subspace(
    vectors: Vectors,
    labels: Labels,
    descriptions: Vectors,
    *,
    directions: int,
    description: float,
    quantile: float,
) -> Subspace:
    """Return the subspace for a round's candidates.

    Args:
        vectors: (n, dim) candidates, at least one.
        labels: (n,) in [0, C).
        descriptions: (C, dim) unit vectors of the labels' public descriptions.
        directions: k, number of directions, at most dim.
        description: Weight of a description in its label's centre, relative to the weight of the label's candidates.
        quantile: Proportion of the candidates that lie within the radius.
    """
    means = label_means(vectors, labels, len(descriptions))
    # As long as the means are: the mean of several unit vectors is shorter than they.
    length = float(np.linalg.norm(means, axis=1).mean())
    centres = (1 - description) * means + description * length * descriptions
    rows = basis(vectors, labels, len(descriptions), directions)
    lengths = np.linalg.norm((vectors - centres[labels]) @ rows.T, axis=1)
    radius = np.float32(np.clip(np.quantile(lengths, quantile), 2 * SMALLEST_RADIUS, LARGEST_RADIUS))
    return Subspace(basis=rows.astype(np.float32), centres=centres.astype(np.float32), radius=float(radius))


def label_means(vectors: Vectors, labels: Labels, label_count: int) -> Floats:
    """Return the mean of each label's candidates, (C, dim). A label without candidates gets the overall mean."""
    sums = np.zeros((label_count, vectors.shape[1]))
    np.add.at(sums, labels, vectors)
    sizes = np.bincount(labels, minlength=label_count)[:, None]
    return np.where(sizes > 0, sums / np.maximum(1, sizes), vectors.mean(axis=0, dtype=np.float64))


def basis(vectors: Vectors, labels: Labels, label_count: int, directions: int) -> Floats:
    """Return orthonormal directions, (k, dim): first those between the labels' means, then those within labels.

    The differences of C labels span at most C - 1 directions; the rest are the principal directions in which candidates
    differ from their label's mean. If candidates are too few or too similar, directions orthogonal to all of these are
    added, up to the number that the plan fixes, since records may differ in directions in which candidates do not. The
    largest entry of each direction is positive, so that the same candidates give the same basis.
    """
    means = label_means(vectors, labels, label_count)
    between = _principal(means - means.mean(axis=0))
    inside = vectors - means[labels]
    within = _principal(inside - inside @ between.T @ between)
    rows = np.concatenate([between, within])[:directions]
    if len(rows) < directions:
        rest = np.linalg.svd(np.concatenate([rows, np.zeros_like(rows[:1])]), full_matrices=True)[2][len(rows) :]
        rows = np.concatenate([rows, _signed(rest[: directions - len(rows)])])
    return rows


def _principal(rows: Floats) -> Floats:
    """Return orthonormal directions that span these rows, in descending order of singular values."""
    _, lengths, directions = np.linalg.svd(rows, full_matrices=False)
    return _signed(directions[lengths > max(_NEGLIGIBLE * lengths.max(initial=0), 1e-9)])


def _signed(directions: Floats) -> Floats:
    largest = np.abs(directions).argmax(axis=1, keepdims=True)
    return np.asarray(directions * np.sign(np.take_along_axis(directions, largest, axis=1)))


def softness(vectors: Vectors, labels: Labels, centres: Vectors) -> float:
    """Return the softness at which a nearest-mean classifier best fits the candidates' labels; see `posteriors`.

    The softness depends only on public candidates and centres. It maximises the likelihood of the requested labels
    under the assumption that a fraction of the candidates has any label instead of the requested one.
    """

    def likelihood(value: np.float64) -> float:
        requested = posteriors(vectors, centres, float(value))[np.arange(len(labels)), labels]
        return float(np.log(_TRUSTED * requested + (1 - _TRUSTED) / len(centres)).sum())

    return float(max(_SOFTNESSES, key=likelihood))


def posteriors(vectors: Vectors, means: Vectors, soft: float) -> Floats:
    """Return the probability of each label for each text, (n, C): softmax((v . m_c - |m_c|^2 / 2) / soft)."""
    return np.asarray(softmax((vectors @ means.T - _half_squares(means)) / soft, axis=1))


def likeness(vectors: Vectors, labels: Labels, records: Floats, first: Vectors) -> Floats:
    """Return the (n, C) probability that each text under a label belongs to that label's records; 0 for other labels.

    It replaces the `posteriors` of tasks without labels, which have one population, and of labels that do not exclude
    one another. Let m be the estimated mean of a label's records, m0 the mean of the first-round texts, relative to
    which they were measured, and s^2 the variance of the label's texts along m - m0. For normal distributions with
    these means and equal scatter, and equal numbers of records and texts, the probability that a text v belongs to the
    records is Fisher's discriminant,

        1 / (1 + exp(-(v - (m + m0) / 2) . (m - m0) / s^2)).

    If shrinkage leaves no offset, the probability is 1/2 for all texts.

    Args:
        vectors: (n, dim) texts.
        labels: (n,) in [0, C), the label of each text.
        records: (C, dim) estimated means of the records.
        first: (C, dim) means of the first-round texts.
    """
    made = np.zeros((len(vectors), len(records)))
    for label in np.unique(labels):
        rows = labels == label
        offset = records[label] - first[label]
        length = float(np.linalg.norm(offset))
        if length < _LEAST_LENGTH:
            made[rows, label] = 0.5
            continue
        along = (vectors[rows] - (records[label] + first[label]) / 2) @ offset / length
        made[rows, label] = expit(along * length / max(float(along.var()), _LEAST_LENGTH))
    return made


def _half_squares(means: Vectors) -> Floats:
    """Return half the squared length of each mean, (C,)."""
    return np.asarray((means.astype(np.float64) ** 2).sum(axis=1) / 2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoisySums:
    """The released numbers, with all data needed to reuse them (`server/operators/class_sums_file.py`).

    Attributes:
        labels: Names of the labels, in the order of the plan.
        subspace: Coordinates in which the records were measured.
        softness: Softness of the classifier that the means define; public.
        sums: (C, k) noised sums of the records' coordinates, in radii.
        counts: (C,) noised numbers of records; they may be negative.
        noise: Standard deviation of the noise of a sum, in radii.
        count_noise: Standard deviation of the noise of a count, in records.
        questionnaire: Noised answers about the form of the records' texts; None if no questionnaire was asked.
    """

    labels: tuple[str, ...]
    subspace: Subspace
    softness: float
    sums: Floats
    counts: Floats
    noise: float
    count_noise: float
    questionnaire: QuestionnaireNumbers | None = None

    @property
    def signal_to_noise(self) -> float | None:
        """Estimated ratio of the root mean squares of the noise-free sums and the noise; None if there is no noise."""
        if self.noise == 0:
            return None
        return math.sqrt(max(0.0, float(np.mean(self.sums**2)) / self.noise**2 - 1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimates:
    """Estimates about the records from noisy sums.

    Attributes:
        shares: (C,) proportion of the records with each label, above 0; they sum to 1.
        means: (C, dim) mean vector of each label's records.
        kept: (C,) fraction of each measured offset that remains after shrinkage, 0 to 1.
    """

    shares: Floats
    means: Floats
    kept: Floats


def estimates(noisy: NoisySums, *, shrinkage: bool = True) -> Estimates:
    """Return the proportions and means, shrunk according to their noise, or as measured if `shrinkage` is false."""
    sizes = _sizes(noisy.counts, noisy.count_noise if shrinkage else 0.0)
    offsets = noisy.sums / sizes[:, None]
    sampling = _SPREAD / (offsets.shape[1] * sizes)
    errors = ((noisy.noise / sizes) ** 2 + sampling)[:, None]
    kept = _shrinkage(offsets, errors) if shrinkage else np.ones((len(sizes), 1))
    offsets = kept * offsets
    # No record's coordinates are longer than 1, nor is their mean.
    offsets /= np.maximum(1.0, np.linalg.norm(offsets, axis=1, keepdims=True))
    space = noisy.subspace
    return Estimates(
        shares=sizes / sizes.sum(), means=space.centres + space.radius * offsets @ space.basis, kept=kept[:, 0]
    )


def classifier(noisy: NoisySums, estimated: Estimates, soft: float) -> LinearClassifier:
    """Return the linear classifier that computes the `posteriors` for the estimated means."""
    means = estimated.means
    return LinearClassifier(labels=noisy.labels, weights=means / soft, intercepts=-_half_squares(means) / soft)


def class_sums_figures(noisy: NoisySums, estimated: Estimates, requested: Labels, posterior: Floats) -> dict[str, Any]:
    """Return a report's figures: signal-to-noise ratio, and each label's proportion, shrinkage and number relabelled.

    If there are no labels, the figures are the signal-to-noise ratio, the shrinkage, and the mean similarity between
    the texts and the records.
    """
    if is_one_population(noisy.labels):
        return {
            "signal_to_noise": noisy.signal_to_noise,
            "shrinkage": float(estimated.kept[0]),
            "likeness": float(posterior.mean()),
        }
    relabelled = np.bincount(requested[posterior.argmax(axis=1) != requested], minlength=len(noisy.labels))
    by_label = {"shares": estimated.shares, "shrinkage": estimated.kept, "relabelled": relabelled}
    return {
        "signal_to_noise": noisy.signal_to_noise,
        **{name: dict(zip(noisy.labels, row.tolist(), strict=True)) for name, row in by_label.items()},
    }


def _sizes(counts: Floats, noise: float) -> Floats:
    """Shrink (C,) numbers of records towards their average.

    The average is taken as at least 1, and each result is at least a quarter of the average.
    """
    labels = len(counts)
    average = max(float(counts.sum()), labels) / labels
    signal = max(0.0, float(((counts - average) ** 2).sum()) / max(1, labels - 1) - noise**2)
    kept = signal / (signal + noise**2) if noise else 1.0
    return np.maximum(average + kept * (counts - average), _LEAST_SHARE * average)


def _shrinkage(offsets: Floats, errors: Floats) -> Floats:
    """Return (C, 1) factors that shrink (C, k) offsets with (C, 1) noise variances, averaged over the prior."""
    logs = np.array([-0.5 * ((offsets**2 / (v + errors)) + np.log(v + errors)).sum() for v in _VARIANCES])
    factors = np.array([v / (v + errors) for v in _VARIANCES])
    return np.asarray(np.tensordot(softmax(logs), factors, axes=1))
