"""Requested labels as evidence: how often texts have the label that was requested of their model.

The means of a census assign a label to each text. Let A be the proportion of a model's texts whose assigned label is
the requested one, t the proportion of texts to which the means assign the correct label, and r the proportion of the
model's texts that really have the requested label. If the errors of the means are independent of the model, A is the
product t r, so that r is A/t. And t can be computed from released numbers and public texts: points are drawn about the
estimated means, with the scatter of the texts that are assigned the same label, and classified by means to which the
noise of the census is added a second time.

Nothing here trusts the public centres: if they were wrong, the released means would disagree with the requests. A weak
census has a low t, so that a model counts as reliable although A is low; with an exact census, a model that misses the
requested labels counts as unreliable.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from server.operators.census import Census, Estimates, Floats, Labels, Vectors, label_means, posteriors

TRUSTED = 0.8
"""Least reliability of a model at which its requested labels count as evidence; below it, they would reduce
accuracy."""
ZERO_SHOT = 0.6
"""Least reliability of a model at which it is prompted without exemplars, since a noisy census may choose wrong
exemplars."""
_MOST = 0.95
_DRAWS, _POINTS = 5, 2000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TextRows:
    """Texts and their origin, with one row for each label, or section, of a text.

    Attributes:
        vectors: (n, dim).
        requested: (n,) requested labels.
        models: (n,) index of the model that wrote each text.
    """

    vectors: Vectors
    requested: Labels
    models: Labels

    def chosen(self, places: Sequence[int]) -> "TextRows":
        """Return the texts with these indices."""
        return TextRows(vectors=self.vectors[places], requested=self.requested[places], models=self.models[places])


def reliabilities(census: Census, estimated: Estimates, texts: TextRows, model_count: int) -> Floats:
    """Estimate the (K,) proportions of each model's texts with the requested label, from 1 / C (guessing) to 0.95.

    Args:
        census: The released numbers.
        estimated: The estimates from these numbers.
        texts: The texts.
        model_count: K. A model without texts gets the reliability of all texts.
    """
    labels = posteriors(texts.vectors, estimated.means, 1.0).argmax(axis=1)
    agreed = labels == texts.requested
    sizes = np.bincount(texts.models, minlength=model_count)
    shares = np.bincount(texts.models, weights=agreed, minlength=model_count) / np.maximum(1, sizes)
    shares = np.where(sizes > 0, shares, agreed.mean())
    return np.clip(shares / _right(census, estimated, texts.vectors, labels), 1 / len(census.labels), _MOST)


def with_evidence(probabilities: Floats, texts: TextRows, reliability: Floats, *, sharpness: float) -> Floats:
    """Multiply (n, C) label probabilities by those that the requested labels imply, for texts of trusted models.

    Args:
        probabilities: (n, C).
        texts: The texts.
        reliability: (K,) reliabilities of the models.
        sharpness: Exponent of the evidence, in (0, 1], which softens the evidence as the probabilities are softened.
    """
    labels = probabilities.shape[1]
    right = reliability[texts.models][:, None]
    evidence = np.where(np.arange(labels) == texts.requested[:, None], right, (1 - right) / max(1, labels - 1))
    product = probabilities * np.where(right >= TRUSTED, evidence**sharpness, 1.0)
    return np.asarray(product / product.sum(axis=1, keepdims=True))


def _right(census: Census, estimated: Estimates, vectors: Vectors, labels: Labels) -> float:
    """Return the fraction of points drawn about the estimated means that these, noised again, classify correctly."""
    generator, space = np.random.default_rng(0), census.subspace
    scatter = vectors - label_means(vectors, labels, len(census.labels))[labels]
    sizes = np.maximum(census.counts, 1.0)[:, None]
    shares = []
    for _ in range(_DRAWS):
        drawn = generator.choice(len(census.labels), _POINTS, p=estimated.shares)
        points = estimated.means[drawn] + scatter[generator.integers(len(scatter), size=_POINTS)]
        noise = estimated.kept[:, None] * generator.normal(0, census.noise, census.sums.shape) / sizes
        means = estimated.means + space.radius * noise @ space.basis
        shares.append(float((posteriors(points, means, 1.0).argmax(axis=1) == drawn).mean()))
    return float(np.mean(shares))
