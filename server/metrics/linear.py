"""A linear classifier that predicts labels from texts' vectors, whatever data it was trained on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

Vectors = NDArray[np.floating]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearClassifier:
    """A linear classifier: the probability of label c for a vector v is the softmax of v . w_c + b_c.

    Attributes:
        labels: Names of the C labels.
        weights: (C, dim) the vectors w_c.
        intercepts: (C,) the numbers b_c.
    """

    labels: tuple[str, ...]
    weights: Vectors
    intercepts: Vectors

    @classmethod
    def of_regression(cls, model: Any) -> Self:
        """Convert scikit-learn's logistic regression, which has only the second label's row if there are two labels."""
        weights, intercepts = model.coef_, model.intercept_
        if len(model.classes_) == 2:
            weights, intercepts = np.concatenate([0 * weights, weights]), np.concatenate([0 * intercepts, intercepts])
        return cls(labels=tuple(map(str, model.classes_)), weights=weights, intercepts=intercepts)

    def probabilities(self, vectors: Vectors) -> NDArray[np.float64]:
        """Return the (n, C) probabilities of the labels for (n, dim) vectors."""
        return np.asarray(softmax(vectors @ self.weights.T + self.intercepts, axis=1), dtype=np.float64)

    def predict(self, vectors: Vectors) -> list[str]:
        """Return the most probable label for each row of (n, dim) vectors."""
        return [self.labels[place] for place in self.probabilities(vectors).argmax(axis=1)]


def probabilities_by_label(labels: Sequence[str], probabilities: NDArray[np.floating]) -> list[dict[str, float]]:
    """Return a mapping from label to probability for each row of (texts, labels), rounded for a file."""
    return [dict(zip(labels, row, strict=True)) for row in probabilities.round(6).tolist()]
