"""Accuracy and macro-F1 of a small text classifier that is trained on one set of texts and tested on another."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from common.errors import DataError
from common.models.encoder import TextEncoder

_SCORES = "accuracy, and macro-F1 over the classes present in the test texts, where one never predicted counts 0."
_WEIGHTED = f"by the weights and the probabilities of labels of the texts where the method gives any; {_SCORES}"
DEFINITIONS = {
    "tfidf": "TF-IDF of words and word pairs (sublinear term frequency) fitted on the training texts, then logistic "
    f"regression (L2, C = 10), {_WEIGHTED}",
    "encoder": f"Logistic regression (L2, C = 10) on the encoder's vectors, {_WEIGHTED}",
    "network": "Three fully connected layers over the encoder's vectors (256 and 64 hidden units, Adam, batches of 64 "
    f"or a few more), by the weights of the texts where the method gives any; {_SCORES}",
    "finetuned": "A transformer with a new classification head, all weights fine-tuned (AdamW, warmed up over a tenth "
    "of the steps) on the texts, by their weights where the method gives any and each class counting alike; stopped "
    f"early on a part of the same texts that was set aside; {_SCORES}",
}
"""For each `evaluation.model`, the text that defines its figures in reports."""

_LEAST_PROBABILITY = 0.01
"""Probability below which a label is ignored in training on a text, since it takes time and adds nothing."""


@dataclass(frozen=True, slots=True)
class SoftLabels:
    """Probabilities of labels in place of labels: a student's targets in distillation (Hinton et al. 2015, section 2).

    Attributes:
        names: The C labels, sorted.
        probabilities: (n, C) probability of each label for each training text; each row sums to 1.
    """

    names: tuple[str, ...]
    probabilities: tuple[tuple[float, ...], ...]

    def __len__(self) -> int:
        """Return the number of training texts."""
        return len(self.probabilities)

    def likely(self) -> NDArray[np.float64]:
        """Return the (n, C) probabilities, with negligible ones set to 0 and each row rescaled to a sum of 1."""
        matrix = np.array(self.probabilities)
        matrix[matrix < np.minimum(_LEAST_PROBABILITY, matrix.max(axis=1, keepdims=True))] = 0
        return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def sizes(labels: Sequence[str] | SoftLabels) -> Mapping[str, float]:
    """Return the number of texts per label or, for probabilities, their sum per label; keyed by label."""
    if not isinstance(labels, SoftLabels):
        return Counter(labels)
    sums = labels.likely().sum(axis=0).tolist()
    return {name: size for name, size in zip(labels.names, sums, strict=True) if size}


def logistic_regression(vectors: Any, labels: Sequence[str] | SoftLabels, weights: Sequence[float]) -> Any:
    """Train and return scikit-learn's logistic regression (L2, C = 10).

    With probabilities, a text contributes one row for each of its likely labels.

    Args:
        vectors: (n, dim), dense or sparse.
        labels: n labels, with at least two different ones.
        weights: n weights of the texts.
    """
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=10.0, max_iter=2000)
    if not isinstance(labels, SoftLabels):
        return fit_in_one_thread(model, vectors, list(labels), list(weights))
    matrix = labels.likely() * np.array(weights)[:, None]
    rows, columns = np.nonzero(matrix)
    return fit_in_one_thread(model, vectors[rows], [labels.names[column] for column in columns], matrix[rows, columns])


def fit_in_one_thread(model: Any, *data: Any) -> Any:
    """Fit one of scikit-learn's models to data and return it; all in one thread.

    The products are small: on a busy machine threads that wait for each other took thirty times as long.
    """
    with _thread_pools().limit(limits=1, user_api="blas"):
        return model.fit(*data)


@cache
def _thread_pools() -> ThreadpoolController:
    """Return the pools of the libraries loaded so far, scikit-learn's among them: a search takes longer than a fit."""
    return ThreadpoolController()


def accuracy(predicted: Sequence[str] | NDArray[np.str_], right: Sequence[str] | NDArray[np.str_]) -> float:
    """Return the fraction of predictions that are correct, 0 to 1."""
    return float((np.asarray(predicted) == np.asarray(right)).mean())


def macro_f1(predicted: Sequence[str] | NDArray[np.str_], right: Sequence[str] | NDArray[np.str_]) -> float:
    """Return the mean F1 over the classes among the true labels, 0 to 1; a class that is never predicted counts as 0.

    The result equals that of scikit-learn, whose input checks are omitted here because an interval needs hundreds of
    calls.
    """
    names, codes = np.unique(np.concatenate([np.asarray(predicted), np.asarray(right)]), return_inverse=True)
    predictions, truth = codes[: len(right)], codes[len(right) :]
    hits, predicted_counts, true_counts = (
        np.bincount(labels, minlength=len(names)) for labels in (truth[predictions == truth], predictions, truth)
    )
    present = true_counts > 0
    return float((2 * hits[present] / (predicted_counts + true_counts)[present]).mean())


def confusion(predicted: Sequence[str], right: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return the sparse confusion matrix: the number of texts for each true label and each predicted label."""
    counts = Counter(zip(right, predicted, strict=True))
    matrix: dict[str, dict[str, int]] = {label: {} for label in sorted(set(right))}
    for (label, prediction), number in sorted(counts.items()):
        matrix[label][prediction] = number
    return matrix


def classifier_vectors(
    train: Sequence[str], test: Sequence[str], encoder: TextEncoder | None
) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
    """Return the classifiers' inputs for the training texts and for the test texts, with one row for each text.

    The rows are the encoder's vectors or, without an encoder, TF-IDF of words and word pairs, which scikit-learn
    returns as sparse matrices. The result is None if no training text has a word.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    if encoder is not None:
        return encoder.encode(train), encoder.encode(test)
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    try:
        fitted = vectorizer.fit_transform(train)
    except ValueError:  # sklearn's only way to say that no text has a word
        return None
    return fitted, vectorizer.transform(test)


def predict(
    train_texts: Sequence[str],
    train_labels: Sequence[str] | SoftLabels,
    test_texts: Sequence[str],
    *,
    train_weights: Sequence[float] | None = None,
    encoder: TextEncoder | None = None,
) -> tuple[list[str], str | None]:
    """Return the labels that the logistic regression of `DEFINITIONS` predicts, and the reason if nothing was fitted.

    The result is deterministic.

    Args:
        train_texts: At least one text.
        train_labels: One label, or the probabilities of all labels, for each text.
        test_texts: At least one text.
        train_weights: Weight of each training text, at least 0; None weights all texts equally.
        encoder: Encoder whose vectors replace TF-IDF.

    Raises:
        DataError: A set is empty.
    """
    for what, texts in (("training set", train_texts), ("test set", test_texts)):
        if len(texts) == 0:
            raise DataError(what, expected="at least one text", got="none")
    weights = (1.0,) * len(train_texts) if train_weights is None else tuple(train_weights)
    given = train_labels if isinstance(train_labels, SoftLabels) else tuple(train_labels)
    labels, note = _predicted(tuple(train_texts), given, tuple(test_texts), weights, encoder)
    return list(labels), note


@lru_cache(maxsize=1)  # an evaluation asks twice: for the scores, and for their intervals
def _predicted(
    train_texts: tuple[str, ...],
    given: tuple[str, ...] | SoftLabels,
    test_texts: tuple[str, ...],
    train_weights: tuple[float, ...],
    encoder: TextEncoder | None,
) -> tuple[list[str], str | None]:
    by_label = sizes(given)
    constant = [min(by_label, key=lambda label: (-by_label[label], label))] * len(test_texts)
    if len(by_label) == 1:
        return constant, "all training texts have one label: it is the answer to every test text"
    embedded = classifier_vectors(train_texts, test_texts, encoder)
    if embedded is None:
        return constant, "no training text has a word: the most frequent label is the answer to every test text"
    train, test = embedded
    model = logistic_regression(train, given, train_weights)
    return [str(label) for label in model.predict(test)], None
