"""Uses of class sums for the next round: exemplars for prompts, needs of labels, and weights and reliability of models.

Everything here is a function of public texts and of noised numbers (`server/operators/class_sums.py`), so nothing
costs privacy. A text's posterior is the probability of each label according to the records' means, which form a private
classifier. Within a label, texts are neither weighted nor chosen by their nearness to the records: with texts from real
models, such a choice selected a single style, at the cost of diversity and accuracy.

Reliability is the proportion r of a model's texts that have the label requested of it. Let A be the proportion of its
texts to which the means assign the requested label, and t the proportion of all texts to which they assign the correct
one. If the errors of the means are independent of the model, A is t r, so that r is A/t. And t can be computed from
released numbers and public texts: points are drawn about the estimated means, with the scatter of the texts that are
assigned the same label, and classified by means to which the noise of the sums is added a second time.

Nothing here trusts the public centres: if they were wrong, the released means would disagree with the requests. Sums
with much noise have a low t, so that a model counts as reliable although A is low; with exact ones, a model that misses
the requested labels counts as unreliable.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from server.operators.class_sums import Estimates, Floats, Labels, NoisySums, Vectors, label_means, posteriors

_MOST_OF_A_MODEL = 0.6
TRUSTED = 0.8
"""Least reliability of a model at which its requested labels count as evidence; below it, they would reduce
accuracy."""
ZERO_SHOT = 0.6
"""Least reliability of a model at which it is prompted without exemplars, since noisy sums may choose wrong
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


def most_probable_texts(posterior: Floats, models: Labels, size: int) -> list[list[int]]:
    """Return the texts with the highest posterior for each label, regardless of the requested label.

    The exemplars of a label are chosen among the texts that have it as their most probable label, if there are at least
    `size` of them, and otherwise among all texts. At most 60% (rounded up) come from one model, as long as there are
    texts from other models.

    Args:
        posterior: (n, C) probability of each label for each text.
        models: (n,) index of the model that wrote each text.
        size: Number of texts per label; fewer are returned if there are not enough.

    Returns:
        For each label, the indices of the chosen texts, best first.
    """
    likeliest, most = posterior.argmax(axis=1), int(np.ceil(_MOST_OF_A_MODEL * size))
    chosen = []
    for label, scores in enumerate(posterior.T):
        order = np.argsort(-scores, kind="stable")
        of_label = order[likeliest[order] == label]
        pool = of_label if len(of_label) >= size else order[:size]
        written: Counter[int] = Counter()
        within: list[int] = []
        beyond: list[int] = []
        for place in pool.tolist():
            written[int(models[place])] += 1
            (within if written[int(models[place])] <= most else beyond).append(place)
        chosen.append((within + beyond)[:size])
    return chosen


def needs(posterior: Floats, shares: Floats, coming: int) -> Floats:
    """Return the (C,) relative numbers of the next round's texts that the labels need, above 0.

    The target for a label is the average of two numbers of texts: an equal part of all texts, including those to come,
    and the label's estimated proportion of all these texts. The label needs the difference between this target and its
    current number of texts, counted by most probable label, but at least a quarter of an equal part of the coming
    texts.

    Args:
        posterior: (n, C) probability of each label for each text so far.
        shares: (C,) estimated proportions of the labels.
        coming: Number of texts to come, at least 1.
    """
    labels = len(shares)
    aims = (len(posterior) + coming) * (0.5 / labels + 0.5 * shares)
    there = np.bincount(posterior.argmax(axis=1), minlength=labels)
    return np.asarray(np.maximum(aims - there, 0.25 * coming / labels))


def model_weights(posterior: Floats, requested: Labels, models: Labels, model_count: int) -> Floats:
    """Return the models' (K,) weights, which sum to 1: the squared mean posterior of the requested labels, normalised.

    A model without texts gets the mean over all models.
    """
    right = posterior[np.arange(len(requested)), requested]
    sizes = np.bincount(models, minlength=model_count)
    sums = np.bincount(models, weights=right, minlength=model_count)
    squares = np.where(sizes > 0, sums / np.maximum(1, sizes), right.mean()) ** 2
    return np.asarray(squares / squares.sum())


def reliabilities(noisy: NoisySums, estimated: Estimates, texts: TextRows, model_count: int) -> Floats:
    """Estimate the (K,) proportions of each model's texts with the requested label, from 1 / C (guessing) to 0.95.

    `estimated` comes from the noisy sums. A model without texts gets the reliability of all texts.
    """
    labels = posteriors(texts.vectors, estimated.means, 1.0).argmax(axis=1)
    agreed = labels == texts.requested
    sizes = np.bincount(texts.models, minlength=model_count)
    shares = np.bincount(texts.models, weights=agreed, minlength=model_count) / np.maximum(1, sizes)
    shares = np.where(sizes > 0, shares, agreed.mean())
    return np.clip(shares / _right(noisy, estimated, texts.vectors, labels), 1 / len(noisy.labels), _MOST)


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


def _right(noisy: NoisySums, estimated: Estimates, vectors: Vectors, labels: Labels) -> float:
    """Return the fraction of points drawn about the estimated means that these, noised again, classify correctly."""
    generator, space = np.random.default_rng(0), noisy.subspace
    scatter = vectors - label_means(vectors, labels, len(noisy.labels))[labels]
    sizes = np.maximum(noisy.counts, 1.0)[:, None]
    shares = []
    for _ in range(_DRAWS):
        drawn = generator.choice(len(noisy.labels), _POINTS, p=estimated.shares)
        points = estimated.means[drawn] + scatter[generator.integers(len(scatter), size=_POINTS)]
        noise = estimated.kept[:, None] * generator.normal(0, noisy.noise, noisy.sums.shape) / sizes
        means = estimated.means + space.radius * noise @ space.basis
        shares.append(float((posteriors(points, means, 1.0).argmax(axis=1) == drawn).mean()))
    return float(np.mean(shares))
