"""A classifier of texts, as a file and as a Python class with scikit-learn's interface, without pickle."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from common.errors import ConfigError, DataError
from common.models.encoder import Encoder
from server.documents.class_sums import TrainedClassifier
from server.documents.codec import pack_floats, unpack_floats
from server.documents.files import read_document
from server.documents.privacy import Privacy
from server.evaluation.remote_encoder import RemoteEncoder
from server.guarantee.words import numbers_guarantee
from server.metrics.linear import LinearClassifier

RELEASED = "the released numbers, without any text"
"""Description of the source of a classifier that consists of a run's released numbers."""


def classifier_document(
    trained: LinearClassifier, source: str, *, run: str, encoder: str, privacy: Privacy
) -> TrainedClassifier:
    """Return the document of a classifier that was learned from a run's released numbers or texts, with its guarantee.

    `source`, `run`, `encoder` and `privacy` are as in `TrainedClassifier`.
    """
    return TrainedClassifier(
        statement=numbers_guarantee(privacy, run),
        source=source,
        run=run,
        encoder=encoder,
        labels=trained.labels,
        weights=pack_floats(trained.weights),
        intercepts=tuple(trained.intercepts.tolist()),
        privacy=privacy,
    )


class TextClassifier:
    """A trained text classifier with scikit-learn's interface: `predict`, `predict_proba`, `score`, `classes_`.

    Args:
        trained: The classifier, which takes vectors.
        encoder: The encoder, which converts texts to vectors.
    """

    def __init__(self, trained: LinearClassifier, encoder: Encoder | RemoteEncoder) -> None:
        self.trained = trained
        self.encoder = encoder
        self.classes_ = np.array(trained.labels)

    @classmethod
    def load(cls, file: str | Path, encoder: Encoder | RemoteEncoder) -> Self:
        """Read a file written by `caucus-coordinator classifier`, or the `classifier.json` of a run folder.

        Args:
            file: The file.
            encoder: The run's encoder, such as `Encoder.pretrained("minilm")`.

        Raises:
            ConfigError: The file does not contain a classifier, or belongs to another encoder.
        """
        classifier = classifier_file(Path(file))
        if classifier.encoder != encoder.digest:
            raise ConfigError(
                "encoder",
                expected=f"that of the classifier, of digest {classifier.encoder:.16}",
                got=f"one of digest {encoder.digest:.16}",
                where=file,
                do="Make the encoder of the run's config.yaml (embedding)",
            )
        return cls(trained_of(classifier), encoder)

    def predict_proba(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the (n, C) label probabilities, in the order of `classes_`.

        Raises:
            DataError: `texts` is not a sequence of texts.
        """
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise DataError("texts", expected="a sequence of texts", got="a single text, or other values")
        return self.trained.probabilities(self.encoder.encode(list(texts)))

    def predict(self, texts: Sequence[str]) -> NDArray[np.str_]:
        """Return the most probable label of each text, (n,)."""
        return np.asarray(self.classes_[self.predict_proba(texts).argmax(axis=1)])

    def score(self, texts: Sequence[str], labels: Sequence[str]) -> float:
        """Return the accuracy, 0 to 1: the fraction of texts whose most probable label equals their label in `labels`.

        Raises:
            DataError: The number of labels differs from the number of texts.
        """
        if len(texts) != len(labels):
            raise DataError("labels", expected=f"one for each of {len(texts)} texts", got=len(labels))
        return float((self.predict(texts) == np.asarray(labels)).mean())


def load_classifier(run: Path) -> TrainedClassifier | None:
    """Return the classifier from a run folder; None if the folder has no classifier.

    Raises:
        ConfigError: The file is damaged.
    """
    return classifier_file(file) if (file := run / TrainedClassifier.FILE).exists() else None


def classifier_file(path: Path) -> TrainedClassifier:
    """Return the content of a classifier's file.

    Raises:
        ConfigError: The file does not exist or is damaged.
    """
    problems: list[str] = []
    classifier = read_document(path, TrainedClassifier.parse, problems)
    if classifier is None:
        do = "Restore it from a backup, or give another folder"
        raise ConfigError("the classifier cannot be read", got=problems[0], where=path.parent, do=do)
    return classifier


def trained_of(classifier: TrainedClassifier) -> LinearClassifier:
    """Return the classifier that the content of a file describes.

    Raises:
        ConfigError: Its numbers do not fit together, or are not finite.
    """
    intercepts = np.array(classifier.intercepts, dtype=float)
    try:
        weights = unpack_floats(classifier.weights, len(classifier.labels))
    except ValueError:
        weights = np.full((1, 1), np.nan, dtype=np.float32)
    if intercepts.shape != (len(weights),) or not np.isfinite(weights).all() or not np.isfinite(intercepts).all():
        raise ConfigError("the classifier's numbers do not fit together", do="Restore its file from a backup")
    return LinearClassifier(labels=classifier.labels, weights=weights, intercepts=intercepts)
