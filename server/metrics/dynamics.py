"""Training dynamics: how well small models learn each text during training (FuseGen, Zou et al. 2024).

Here a small model is a linear classifier over the encoder's vectors, trained for a few epochs by gradient descent. Its
predictions after each epoch separate easy texts, on which models trained on different sets agree, from ambiguous texts,
on which they differ (as in the data maps of Swayamdipta et al. 2020). All texts are synthetic, so no step costs
privacy.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from common.errors import DataError

if TYPE_CHECKING:
    from sklearn.linear_model import SGDClassifier


@dataclass(frozen=True, slots=True, kw_only=True)
class Dynamics:
    """Training dynamics of n texts.

    Attributes:
        confidence: (n,) float64, 0 to 1: probability of the text's own label, averaged over models and epochs.
        variability: (n,) float64, at least 0: standard deviation over models of that probability's mean over epochs.
    """

    confidence: NDArray[np.float64]
    variability: NDArray[np.float64]


def cross_model_dynamics(
    vectors: NDArray[np.floating], labels: NDArray[np.integer], models: NDArray[np.integer], *, epochs: int
) -> Dynamics:
    """Train one small model on the texts of each language model, and evaluate each small model on all texts.

    Args:
        vectors: (n, dimensions), unit norm.
        labels: (n,) label indices, at least 0.
        models: (n,) index of the language model that wrote each text.
        epochs: Number of passes of each small model over its training texts.

    Returns:
        The dynamics, which are deterministic; variability is 0 if there is only one language model.

    Raises:
        DataError: There are no texts, or the arrays differ in length.
    """
    if not len(vectors) == len(labels) == len(models) > 0:
        raise DataError("texts to learn from", expected="at least one, with a label and a model each", got="none")
    beliefs = np.stack([_beliefs(vectors, labels, models == model, epochs) for model in np.unique(models)])
    return Dynamics(confidence=beliefs.mean(axis=0), variability=beliefs.std(axis=0))


def self_boosted_weights(
    vectors: NDArray[np.floating], labels: NDArray[np.integer], *, rounds: int, epochs: int
) -> NDArray[np.float64]:
    """Return text weights from how well a small model learns each text (self-boosting weight adjustment).

    In each round a small model is trained on all texts with the current weights. Let e_i be one minus the probability
    that the model assigns to text i's label. If the model labels text i correctly, the text's weight is multiplied by
    β^e_i, and otherwise by β^-e_i; then all weights are rescaled to the same sum. Texts that are learned with low
    confidence gain weight; texts that are not learned lose weight. β = 1 + sqrt(max(1, 2 ln(n / rounds))), as in the
    authors' program.

    Args:
        vectors: (n, dimensions), unit norm.
        labels: (n,) label indices, at least 0.
        rounds: Number of adjustments; 0 leaves the weights equal.
        epochs: Number of epochs of each training.

    Returns:
        (n,) float64 weights above 0, mean 1.
    """
    weights = np.ones(len(labels))
    if len(set(labels.tolist())) < 2:
        return weights
    beta = 1 + math.sqrt(max(1.0, 2 * math.log(len(labels) / max(1, rounds))))
    for _ in range(rounds):
        model = _untrained()
        for _ in range(epochs):
            model.partial_fit(vectors, labels, classes=np.unique(labels), sample_weight=weights)
        right = model.predict(vectors) == labels
        missing = 1 - _label_probabilities(model, vectors, labels)
        weights *= beta ** np.where(right, missing, -missing)
        weights *= len(weights) / weights.sum()
    return weights


def _beliefs(
    vectors: NDArray[np.floating], labels: NDArray[np.integer], part: NDArray[np.bool_], epochs: int
) -> NDArray[np.float64]:
    """Return the (n,) probabilities of the texts' own labels from a model trained on `part`, averaged over epochs."""
    classes = np.unique(labels)
    if len(classes) < 2:
        return np.ones(len(labels))
    model = _untrained()
    total = np.zeros(len(labels))
    for _ in range(epochs):
        model.partial_fit(vectors[part], labels[part], classes=classes)
        total += _label_probabilities(model, vectors, labels)
    return total / epochs


def _untrained() -> "SGDClassifier":
    from sklearn.linear_model import SGDClassifier

    # At this step size a few epochs show learning: smaller ones barely start, larger ones end after the first.
    return SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.5, random_state=0)


def _label_probabilities(
    model: "SGDClassifier", vectors: NDArray[np.floating], labels: NDArray[np.integer]
) -> NDArray[np.float64]:
    columns = np.searchsorted(model.classes_, labels)
    return np.asarray(model.predict_proba(vectors)[np.arange(len(labels)), columns])
