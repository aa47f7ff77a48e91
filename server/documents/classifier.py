"""`classifier.json`: a classifier of texts that costs no privacy beyond the run's own epsilon."""

from dataclasses import dataclass
from typing import ClassVar

from server.documents.files import Document
from server.documents.privacy import Privacy


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedClassifier(Document):
    """A linear classifier; see `server.metrics.linear.LinearClassifier`.

    Attributes:
        statement: The guarantee in sentences.
        source: Description of what it was learned from.
        run: The run that asked the parties.
        encoder: Digest of the encoder that computes the vectors.
        labels: The labels.
        weights: (labels, dimensions) float32 in row-major order, as base64.
        intercepts: (labels,) intercepts.
        privacy: The run's `privacy.json`.
    """

    FILE: ClassVar[str] = "classifier.json"

    statement: str
    source: str
    run: str
    encoder: str
    labels: tuple[str, ...]
    weights: str
    intercepts: tuple[float, ...]
    privacy: Privacy
